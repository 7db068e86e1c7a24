import type Database from 'better-sqlite3';
import type { Change, TaskWatch } from '../../ledger/index.js';
import { ofWatch, toWatch, WATCH_COLUMNS, type WatchColumns } from '../rows/watch.js';
import { exactlyOne } from './errors.js';
import { insertInto } from './keys.js';

export function watchTable(db: Database.Database) {
  const get = db.prepare<[string, string], WatchColumns>(
    'SELECT * FROM watches WHERE watch_id = ? AND until > ?',
  );
  const add = db.prepare<WatchColumns>(insertInto('watches', WATCH_COLUMNS));
  const remove = db.prepare<[string, string]>('DELETE FROM watches WHERE watch_id = ? AND tenant = ?');
  const prune = db.prepare<[string, string, string]>(
    'DELETE FROM watches WHERE tenant = ? AND agent = ? AND until <= ?',
  );
  const heard = db
    .prepare<[string, string], 1>('SELECT 1 FROM heard WHERE watch_id = ? AND notification_id = ?')
    .pluck();
  const hear = db.prepare<[string, string, string]>(
    `INSERT INTO heard (notification_id, at, watch_id) SELECT ?, ?, watch_id FROM watches WHERE watch_id = ?
     ON CONFLICT (watch_id, notification_id) DO NOTHING`,
  );
  const forget = db.prepare<[string, number]>(
    'DELETE FROM heard WHERE rowid IN (SELECT rowid FROM heard WHERE watch_id = ? ORDER BY rowid DESC LIMIT -1 OFFSET ?)',
  );
  return {
    get(watchId: string, now: string): TaskWatch | null {
      const row = get.get(watchId, now);
      return row === undefined ? null : toWatch(row);
    },
    heard: (watchId: string, notificationId: string): boolean =>
      heard.get(watchId, notificationId) !== undefined,
    add: (row: TaskWatch): void => exactlyOne(add.run(ofWatch(row))),
    remove: (tenant: string, watchId: string): void => void remove.run(watchId, tenant),
    prune: (tenant: string, agent: string, now: string): void => void prune.run(tenant, agent, now),
    hear({ watchId, notificationId, at, most }: Extract<Change, { do: 'hear' }>): void {
      hear.run(notificationId, at, watchId);
      forget.run(watchId, most);
    },
  };
}
