import type Database from 'better-sqlite3';
import type { KindDefinition } from '../../ledger/index.js';

export function kindTable(db: Database.Database) {
  const get = db.prepare<[string, string], string>(
    'SELECT definition FROM kinds WHERE tenant = ? AND kind = ?',
  );
  const list = db.prepare<[string], string>('SELECT definition FROM kinds WHERE tenant = ? ORDER BY kind');
  const put = db.prepare<[string, string, string]>(
    `INSERT INTO kinds (tenant, kind, definition) VALUES (?, ?, ?)
     ON CONFLICT (tenant, kind) DO UPDATE SET definition = excluded.definition`,
  );
  const parse = (text: string): KindDefinition => JSON.parse(text);
  get.pluck();
  list.pluck();
  return {
    get(tenant: string, kind: string): KindDefinition | null {
      const text = get.get(tenant, kind);
      return text === undefined ? null : parse(text);
    },
    list: (tenant: string): KindDefinition[] => list.all(tenant).map(parse),
    put(tenant: string, kind: KindDefinition): void {
      put.run(tenant, kind.kind, JSON.stringify(kind));
    },
  };
}
