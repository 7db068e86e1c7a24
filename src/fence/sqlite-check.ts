import type { SqliteDatabase } from './connection.js';
import { type FenceProblem, type FenceReport, reportOf } from './report.js';
import type { FenceSpec } from './spec.js';
import { sqliteFence } from './sqlite.js';

/**
 * Says whether the fence of a table is there, of this version, and fits the table as it is now: a unique key that was added since
 * is not in it.
 * @throws usage where there is no such table or column
 */
export function checkSqliteFence(db: SqliteDatabase, input: FenceSpec): FenceReport {
  const { spec, addColumn, triggers } = sqliteFence(db, input);
  const relation = spec.table;
  const found = new Map(
    (
      db
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?")
        .all(relation) as {
        name: string;
        sql: string;
      }[]
    ).map(({ name, sql }) => [name, sql]),
  );
  const problems = [...triggers].flatMap(([name, sql]): FenceProblem[] => {
    const about = { relation, about: / (INSERT|UPDATE|DELETE) ON /.exec(sql)?.[1] ?? name };
    if (!found.has(name)) return [{ ...about, state: 'missing', problem: `has no trigger ${name}` }];
    if (found.get(name) === sql) return [];
    const problem = `the trigger ${name} was changed, is of another version, or the table was changed since`;
    return [{ ...about, state: 'altered', problem }];
  });
  if (addColumn !== null) {
    const problem = `has no column ${spec.tokenColumn}`;
    problems.unshift({ relation, about: spec.tokenColumn, state: 'missing', problem });
  }
  const note = 'Whoever may write to the file can drop the fence, or switch triggers off on a connection.';
  return reportOf(relation, problems, [note]);
}
