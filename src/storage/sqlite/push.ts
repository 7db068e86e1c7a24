import type Database from 'better-sqlite3';
import type { Change, DeadFilter, Notification, PushClaim, PushConfig } from '../../ledger/index.js';
import type { NotificationFilter } from '../engine.js';
import {
  ENTRY,
  type EntryColumns,
  type NotificationColumns,
  ofNotification,
  ofPush,
  PUSH_COLUMNS,
  type PushColumns,
  toEntry,
  toNotification,
  toPush,
} from '../rows/push.js';
import { exactlyOne } from './errors.js';
import { insertInto, whereGiven } from './keys.js';
import type { Prepared } from './prepared.js';

export function pushTable(db: Database.Database, prepared: Prepared) {
  const ofTask = db.prepare<[string, string], PushColumns>(
    'SELECT * FROM push_configs WHERE tenant = ? AND task_id = ? ORDER BY rowid',
  );
  const get = db.prepare<[string, string], PushColumns>(
    'SELECT * FROM push_configs WHERE push_id = ? AND tenant = ?',
  );
  const due = db.prepare<object, PushColumns>(
    `SELECT * FROM push_configs c WHERE tenant = @tenant AND agent = @agent AND due_at <= @now
       AND origin NOT IN (SELECT value FROM json_each(@without))
       AND push_id NOT IN (SELECT value FROM json_each(@working))
       AND NOT EXISTS (SELECT 1 FROM holders h WHERE h.holder = c.holder AND h.until > @now AND h.holder <> @holder)
     ORDER BY due_at LIMIT @limit`,
  );
  const add = db.prepare<PushColumns>(insertInto('push_configs', PUSH_COLUMNS));
  const set = db.prepare<PushColumns>(
    `UPDATE push_configs SET url = @url, origin = @origin, token = @token, scheme = @scheme, agent = @agent,
       credentials = @credentials, state = @state, holder = @holder, due_at = @due_at, rev = @rev
     WHERE push_id = @push_id AND tenant = @tenant AND rev = @rev - 1`,
  );
  const remove = db.prepare<[string, string]>('DELETE FROM push_configs WHERE push_id = ? AND tenant = ?');
  const told = `tenant = @tenant AND task_id = @taskId AND state = 'active' AND (@pushId IS NULL OR push_id = @pushId)`;
  const notify = db.prepare<object>(
    `INSERT INTO notifications (tenant, push_id, seq, body, state, at, since, tries)
     SELECT tenant, push_id, @seq, @body, 'waiting', @at, @at, 0 FROM push_configs WHERE ${told}`,
  );
  const wake = db.prepare<object>(
    `UPDATE push_configs SET due_at = coalesce(due_at, @at), rev = rev + 1 WHERE ${told}`,
  );
  const waiting = db.prepare<[string, string], NotificationColumns>(
    `SELECT * FROM notifications WHERE push_id = ? AND tenant = ? AND state = 'waiting' ORDER BY seq LIMIT 2`,
  );
  const one = db.prepare<[string, number, string], NotificationColumns>(
    'SELECT * FROM notifications WHERE push_id = ? AND seq = ? AND tenant = ?',
  );
  const setOne = db.prepare<NotificationColumns>(
    `UPDATE notifications SET state = @state, since = @since, tries = @tries, tried_at = @tried_at, reason = @reason
     WHERE push_id = @push_id AND seq = @seq AND tenant = @tenant`,
  );
  const removeOne = db.prepare<[string, number, string]>(
    'DELETE FROM notifications WHERE push_id = ? AND seq = ? AND tenant = ?',
  );
  const bury = db.prepare<object>(
    `UPDATE notifications SET state = 'dead', reason = @reason, tried_at = @at
     WHERE push_id = @pushId AND tenant = @tenant AND state = 'waiting'`,
  );
  const counts = db.prepare<[string], { state: Notification['state']; n: number }>(
    'SELECT state, count(*) AS n FROM notifications WHERE tenant = ? GROUP BY state',
  );
  return {
    ofTask: (tenant: string, taskId: string): PushConfig[] => ofTask.all(tenant, taskId).map(toPush),
    get(tenant: string, pushId: string): PushConfig | null {
      const row = get.get(pushId, tenant);
      return row === undefined ? null : toPush(row);
    },
    due({ tenant, agent, holder, limit, ...claim }: PushClaim, now: string): PushConfig[] {
      const [without, working] = [JSON.stringify(claim.without), JSON.stringify(claim.working)];
      return due.all({ tenant, agent, holder, now, limit, without, working }).map(toPush);
    },
    waiting: (tenant: string, pushId: string): Notification[] =>
      waiting.all(pushId, tenant).map(toNotification),
    dead({ tenant, agent, pushId, seq, before, limit }: DeadFilter): Notification[] {
      const given = { push_id: pushId, seq };
      const old = before === undefined ? '' : ' AND coalesce(tried_at, at) < @before';
      const sql = `SELECT * FROM notifications n WHERE tenant = @tenant AND state = 'dead'${whereGiven(given)}${old}
        AND EXISTS (SELECT 1 FROM push_configs c WHERE c.push_id = n.push_id AND c.agent = @agent)
        ORDER BY coalesce(tried_at, at), push_id, seq LIMIT @limit`;
      return prepared
        .all<NotificationColumns>(sql, { tenant, agent, ...given, before, limit })
        .map(toNotification);
    },
    list(tenant: string, { state, pushId, limit }: NotificationFilter) {
      const which = `${state === undefined ? '' : ' AND n.state = @state'}${pushId === undefined ? '' : ' AND n.push_id = @pushId'}`;
      const sql = `SELECT ${ENTRY} FROM notifications n JOIN push_configs c ON c.push_id = n.push_id
        WHERE n.tenant = @tenant${which} ORDER BY n.at, n.push_id, n.seq LIMIT @limit`;
      return prepared.all<EntryColumns>(sql, { tenant, state, pushId, limit: limit ?? -1 }).map(toEntry);
    },
    one(tenant: string, pushId: string, seq: number): Notification | null {
      const row = one.get(pushId, seq, tenant);
      return row === undefined ? null : toNotification(row);
    },
    counts(tenant: string) {
      const found = new Map(counts.all(tenant).map(({ state, n }) => [state, n]));
      return { waiting: found.get('waiting') ?? 0, dead: found.get('dead') ?? 0 };
    },
    add: (row: PushConfig): void => exactlyOne(add.run(ofPush(row))),
    set: (row: PushConfig): void => exactlyOne(set.run(ofPush(row))),
    remove: (tenant: string, pushId: string): void => void remove.run(pushId, tenant),
    notify({ do: _, ...change }: Extract<Change, { do: 'notify' }>): void {
      if (notify.run(change).changes > 0) wake.run(change);
    },
    setOne: (row: Notification): void => exactlyOne(setOne.run(ofNotification(row))),
    removeOne: (tenant: string, pushId: string, seq: number): void => void removeOne.run(pushId, seq, tenant),
    bury: ({ do: _, ...change }: Extract<Change, { do: 'bury_notifications' }>): void =>
      void bury.run(change),
  };
}
