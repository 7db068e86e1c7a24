/**
 * Where peers want to hear of their tasks, and what is on its way there. A notification is written with the event that it tells of. Neither is
 * history: a notification goes when it is delivered, and a configuration when its peer deletes it.
 * `due_at` is set as long as something waits, so that nobody looks at what has nothing to deliver.
 * And the other way: tasks at peers that an agent here wants to hear of, and what it has heard, so that it hears each thing once.
 */
export const sql = `
CREATE TABLE push_configs (
  push_id TEXT NOT NULL PRIMARY KEY CHECK (push_id <> ''),
  tenant TEXT NOT NULL,
  task_id TEXT NOT NULL,
  config_id TEXT NOT NULL CHECK (config_id <> ''),
  agent TEXT NOT NULL,
  url TEXT NOT NULL,
  origin TEXT NOT NULL,
  token TEXT,
  scheme TEXT,
  credentials TEXT,
  state TEXT NOT NULL CHECK (state IN ('active', 'ended')),
  holder TEXT REFERENCES holders (holder) ON DELETE SET NULL,
  due_at TEXT,
  rev INTEGER NOT NULL CHECK (rev >= 1),
  created_at TEXT NOT NULL,
  UNIQUE (tenant, task_id, config_id),
  FOREIGN KEY (tenant, task_id) REFERENCES tasks (tenant, id)
) STRICT;
CREATE INDEX push_configs_due ON push_configs (tenant, agent, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX push_configs_by_holder ON push_configs (holder) WHERE holder IS NOT NULL;

CREATE TABLE notifications (
  tenant TEXT NOT NULL,
  push_id TEXT NOT NULL REFERENCES push_configs (push_id) ON DELETE CASCADE,
  seq INTEGER NOT NULL CHECK (seq >= 1),
  body TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('waiting', 'dead')),
  at TEXT NOT NULL,
  since TEXT NOT NULL,
  tries INTEGER NOT NULL CHECK (tries >= 0),
  tried_at TEXT,
  reason TEXT,
  PRIMARY KEY (push_id, seq)
) STRICT;
CREATE INDEX notifications_dead ON notifications (tenant, tried_at) WHERE state = 'dead';

CREATE TABLE watches (
  watch_id TEXT NOT NULL PRIMARY KEY CHECK (watch_id <> ''),
  tenant TEXT NOT NULL,
  agent TEXT NOT NULL,
  peer TEXT NOT NULL,
  task_id TEXT NOT NULL,
  token_hash TEXT NOT NULL,
  secret TEXT NOT NULL,
  created_at TEXT NOT NULL,
  until TEXT NOT NULL
) STRICT;
CREATE INDEX watches_by_end ON watches (tenant, agent, until);

CREATE TABLE heard (
  watch_id TEXT NOT NULL REFERENCES watches (watch_id) ON DELETE CASCADE,
  notification_id TEXT NOT NULL,
  at TEXT NOT NULL,
  PRIMARY KEY (watch_id, notification_id)
) STRICT;
`;
