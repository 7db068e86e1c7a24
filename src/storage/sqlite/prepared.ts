import type Database from 'better-sqlite3';

/** Statements whose conditions depend on a filter, each prepared once. Filters are few, so the cache is too. */
export class Prepared {
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Database.Statement<[object], unknown>>();

  constructor(db: Database.Database) {
    this.#db = db;
  }

  all<Row>(sql: string, parameters: Readonly<Record<string, unknown>>): Row[] {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#db.prepare<[object], unknown>(sql);
      this.#statements.set(sql, statement);
    }
    const given = Object.entries(parameters).filter(([, value]) => value !== undefined);
    return statement.all(Object.fromEntries(given)) as Row[];
  }
}
