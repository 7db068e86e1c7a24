/** Ordered by its bytes whatever the database's locale, as in the other storages. */
const TEXT = 'TEXT COLLATE "C"';

const PUSH = `tenant push_id task_id config_id agent url origin token scheme credentials state holder due_at rev created_at`;
const WATCH = 'tenant watch_id agent peer task_id token_hash secret created_at until';
const NOTIFICATION = 'tenant push_id seq body state at since tries tried_at reason';

const TYPES: Readonly<Record<string, string>> = {
  n: 'int',
  most: 'int',
  rev: 'bigint',
  seq: 'bigint',
  tries: 'bigint',
};

const quoted = (columns: string, prefix = '') =>
  columns
    .split(' ')
    .map((column) => `${prefix}"${column}"`)
    .join(', ');

/** Rows of one list of the batch, as a table. */
const rows = (list: string, columns: string) =>
  `jsonb_to_recordset(batch -> '${list}') AS r(${`n ${columns}`
    .split(' ')
    .map((column) => `"${column}" ${TYPES[column] ?? TEXT}`)
    .join(', ')})`;

/** Does something for each row of one list. */
const each = (list: string, columns: string, work: string) => `
  IF batch ? '${list}' THEN
    FOR r IN SELECT * FROM ${rows(list, columns)} WHERE n = ANY (go) ORDER BY n LOOP
      ${work};
    END LOOP;
  END IF;`;

const orElse = (list: string) =>
  `IF NOT FOUND THEN RAISE EXCEPTION '${list}: not as it has to be' USING ERRCODE = 'HL002'; END IF`;

/**
 * Where peers want to hear of their tasks, and what is on its way there. A notification is written with the event that it tells of. Neither is
 * history: a notification goes when it is delivered, and a configuration when its peer deletes it.
 * `due_at` is set as long as something waits, so that nobody looks at what has nothing to deliver. Whoever adds a notification changes its
 * configuration, too: one that looks whether anything waits holds the configuration, so that neither misses the other.
 * And the other way: tasks at peers that an agent here wants to hear of, and what it has heard, so that it hears each thing once.
 */
export const sql = `
CREATE TABLE holdfast.push_configs (
  push_id ${TEXT} PRIMARY KEY CHECK (push_id <> ''),
  tenant ${TEXT} NOT NULL,
  task_id ${TEXT} NOT NULL,
  config_id ${TEXT} NOT NULL CHECK (config_id <> ''),
  agent ${TEXT} NOT NULL,
  url ${TEXT} NOT NULL,
  origin ${TEXT} NOT NULL,
  token ${TEXT},
  scheme ${TEXT},
  credentials ${TEXT},
  state ${TEXT} NOT NULL CHECK (state IN ('active', 'ended')),
  holder ${TEXT} REFERENCES holdfast.holders (holder) ON DELETE SET NULL,
  due_at ${TEXT},
  rev BIGINT NOT NULL CHECK (rev >= 1),
  created_at ${TEXT} NOT NULL,
  ord BIGINT GENERATED ALWAYS AS IDENTITY,
  UNIQUE (tenant, task_id, config_id),
  FOREIGN KEY (tenant, task_id) REFERENCES holdfast.tasks (tenant, id)
);
CREATE INDEX push_configs_due ON holdfast.push_configs (agent, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX push_configs_by_holder ON holdfast.push_configs (holder) WHERE holder IS NOT NULL;

CREATE TABLE holdfast.notifications (
  tenant ${TEXT} NOT NULL,
  push_id ${TEXT} NOT NULL REFERENCES holdfast.push_configs (push_id) ON DELETE CASCADE,
  seq BIGINT NOT NULL CHECK (seq >= 1),
  body ${TEXT} NOT NULL,
  state ${TEXT} NOT NULL CHECK (state IN ('waiting', 'dead')),
  at ${TEXT} NOT NULL,
  since ${TEXT} NOT NULL,
  tries BIGINT NOT NULL CHECK (tries >= 0),
  tried_at ${TEXT},
  reason ${TEXT},
  PRIMARY KEY (push_id, seq)
);
CREATE INDEX notifications_dead ON holdfast.notifications (tried_at) WHERE state = 'dead';

CREATE TABLE holdfast.watches (
  watch_id ${TEXT} PRIMARY KEY CHECK (watch_id <> ''),
  tenant ${TEXT} NOT NULL,
  agent ${TEXT} NOT NULL,
  peer ${TEXT} NOT NULL,
  task_id ${TEXT} NOT NULL,
  token_hash ${TEXT} NOT NULL,
  secret ${TEXT} NOT NULL,
  created_at ${TEXT} NOT NULL,
  until ${TEXT} NOT NULL,
  ord BIGINT GENERATED ALWAYS AS IDENTITY
);
CREATE INDEX watches_by_end ON holdfast.watches (agent, until);

CREATE TABLE holdfast.heard (
  watch_id ${TEXT} NOT NULL REFERENCES holdfast.watches (watch_id) ON DELETE CASCADE,
  notification_id ${TEXT} NOT NULL,
  at ${TEXT} NOT NULL,
  ord BIGINT GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (watch_id, notification_id)
);

-- What was there is one part of it now; the lists of this page are carried out behind it, in the same statement of the caller.
ALTER FUNCTION holdfast.apply(int[], jsonb, timestamptz) RENAME TO apply_ledger;

CREATE FUNCTION holdfast.apply(go int[], batch jsonb, clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r record;
BEGIN
  PERFORM holdfast.apply_ledger(go, batch, clock);
  IF batch ? 'add_push' THEN
    INSERT INTO holdfast.push_configs (${quoted(PUSH)})
      SELECT ${quoted(PUSH, 'r.')} FROM ${rows('add_push', PUSH)} WHERE n = ANY (go) ORDER BY n;
  END IF;
${each(
  'set_push',
  PUSH,
  `UPDATE holdfast.push_configs c SET agent = r.agent, url = r.url, origin = r.origin, token = r.token, scheme = r.scheme,
        credentials = r.credentials, state = r.state, holder = r.holder, due_at = r.due_at, rev = r.rev
        WHERE c.push_id = r.push_id AND c.tenant = r.tenant AND c.rev = r.rev - 1;
      ${orElse('set_push')}`,
)}
${each(
  'remove_push',
  'tenant push_id',
  'DELETE FROM holdfast.push_configs c WHERE c.push_id = r.push_id AND c.tenant = r.tenant',
)}
${each(
  'notify',
  'tenant task_id push_id seq body at',
  `WITH told AS (
        UPDATE holdfast.push_configs c SET due_at = coalesce(c.due_at, r.at), rev = c.rev + 1
        WHERE c.tenant = r.tenant AND c.task_id = r.task_id AND c.state = 'active'
          AND (r.push_id IS NULL OR c.push_id = r.push_id) RETURNING c.push_id)
      INSERT INTO holdfast.notifications (tenant, push_id, seq, body, state, at, since, tries)
        SELECT r.tenant, t.push_id, r.seq, r.body, 'waiting', r.at, r.at, 0 FROM told t`,
)}
${each(
  'set_notification',
  NOTIFICATION,
  `UPDATE holdfast.notifications c SET state = r.state, since = r.since, tries = r.tries, tried_at = r.tried_at,
        reason = r.reason WHERE c.push_id = r.push_id AND c.seq = r.seq AND c.tenant = r.tenant;
      ${orElse('set_notification')}`,
)}
${each(
  'remove_notification',
  'tenant push_id seq',
  'DELETE FROM holdfast.notifications c WHERE c.push_id = r.push_id AND c.seq = r.seq AND c.tenant = r.tenant',
)}
${each(
  'bury_notifications',
  'tenant push_id reason at',
  `UPDATE holdfast.notifications c SET state = 'dead', reason = r.reason, tried_at = r.at
        WHERE c.push_id = r.push_id AND c.tenant = r.tenant AND c.state = 'waiting'`,
)}
  IF batch ? 'add_watch' THEN
    INSERT INTO holdfast.watches (${quoted(WATCH)})
      SELECT ${quoted(WATCH, 'r.')} FROM ${rows('add_watch', WATCH)} WHERE n = ANY (go) ORDER BY n
      ON CONFLICT DO NOTHING;
  END IF;
${each(
  'remove_watch',
  'tenant watch_id',
  'DELETE FROM holdfast.watches c WHERE c.watch_id = r.watch_id AND c.tenant = r.tenant',
)}
${each(
  'prune_watches',
  'tenant agent now',
  'DELETE FROM holdfast.watches c WHERE c.tenant = r.tenant AND c.agent = r.agent AND c.until <= r.now',
)}
${each(
  'hear',
  'watch_id notification_id at most',
  `INSERT INTO holdfast.heard (watch_id, notification_id, at)
        SELECT c.watch_id, r.notification_id, r.at FROM holdfast.watches c WHERE c.watch_id = r.watch_id
        ON CONFLICT DO NOTHING;
      DELETE FROM holdfast.heard h WHERE h.watch_id = r.watch_id AND h.notification_id IN (
        SELECT o.notification_id FROM holdfast.heard o WHERE o.watch_id = r.watch_id ORDER BY o.ord DESC OFFSET r.most)`,
)}
END $$;
`;
