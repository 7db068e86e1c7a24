/**
 * The invariants hold here too, so that a fault in our own code, or a hand with a SQL shell, meets them:
 * H1 and H2 by `cases_move`, H4 by the keys of decisions and work items, H5 by the key of effects, H8 by `audit_next`.
 */
export const sql = `
CREATE TABLE meta (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE kinds (
  tenant TEXT NOT NULL,
  kind TEXT NOT NULL,
  definition TEXT NOT NULL CHECK (json_valid(definition)),
  PRIMARY KEY (tenant, kind)
) STRICT, WITHOUT ROWID;

CREATE TABLE cases (
  tenant TEXT NOT NULL CHECK (tenant <> ''),
  root TEXT NOT NULL CHECK (root <> ''),
  case_id TEXT NOT NULL CHECK (case_id <> ''),
  kind TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('open', 'closed')),
  owner TEXT NOT NULL CHECK (owner <> ''),
  epoch INTEGER NOT NULL CHECK (epoch BETWEEN 1 AND 9007199254740991),
  opened_by TEXT NOT NULL,
  opened_at TEXT NOT NULL,
  closed_at TEXT,
  contract TEXT,
  constraints TEXT NOT NULL CHECK (json_valid(constraints)),
  hops TEXT NOT NULL CHECK (json_valid(hops)),
  tasks_left INTEGER NOT NULL,
  PRIMARY KEY (tenant, root, case_id),
  FOREIGN KEY (tenant, kind) REFERENCES kinds (tenant, kind),
  CHECK ((status = 'closed') = (closed_at IS NOT NULL))
) STRICT;
CREATE INDEX cases_by_id ON cases (tenant, case_id);
CREATE INDEX cases_by_owner ON cases (tenant, owner, status);

CREATE TABLE offers (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  handoff_id TEXT NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  kind TEXT NOT NULL,
  to_agent TEXT NOT NULL CHECK (to_agent <> sender),
  contract TEXT NOT NULL,
  skill TEXT NOT NULL,
  epoch INTEGER NOT NULL CHECK (epoch >= 1),
  digest TEXT NOT NULL,
  message TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN
    ('intended', 'offered', 'accepted', 'rejected', 'withdrawn', 'expired', 'in_doubt')),
  code TEXT,
  accept_by TEXT NOT NULL,
  intended_at TEXT NOT NULL,
  intended_seq INTEGER NOT NULL,
  closed_at TEXT,
  withheld TEXT NOT NULL CHECK (json_valid(withheld)),
  receipt TEXT,
  receipt_key TEXT,
  PRIMARY KEY (tenant, root, case_id, sender, handoff_id, attempt),
  UNIQUE (tenant, root, sender, handoff_id, attempt),
  FOREIGN KEY (tenant, root, case_id) REFERENCES cases (tenant, root, case_id),
  CHECK ((state IN ('intended', 'offered', 'in_doubt')) = (closed_at IS NULL)),
  CHECK ((state = 'rejected') = (code IS NOT NULL)),
  CHECK (receipt IS NULL OR state = 'accepted'),
  CHECK ((receipt IS NULL) = (receipt_key IS NULL))
) STRICT;
CREATE UNIQUE INDEX offers_one_open ON offers (tenant, root, case_id)
  WHERE state IN ('intended', 'offered', 'in_doubt');

CREATE TABLE decisions (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  sender TEXT NOT NULL,
  handoff_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  case_id TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK (verdict IN ('accepted', 'rejected', 'tombstone')),
  code TEXT,
  digest TEXT,
  answer TEXT NOT NULL,
  task_id TEXT,
  epoch_before INTEGER,
  epoch_after INTEGER,
  decided_at TEXT NOT NULL,
  PRIMARY KEY (tenant, root, sender, handoff_id, attempt),
  CHECK ((verdict = 'accepted') = (code IS NULL)),
  CHECK ((verdict = 'tombstone') = (digest IS NULL)),
  CHECK (verdict <> 'accepted' OR epoch_after = epoch_before + 1)
) STRICT;
CREATE INDEX decisions_by_case ON decisions (tenant, root, case_id);
CREATE UNIQUE INDEX decisions_one_per_epoch ON decisions (tenant, root, case_id, epoch_after)
  WHERE verdict = 'accepted';

CREATE TABLE work_items (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  id TEXT NOT NULL,
  sender TEXT NOT NULL,
  handoff_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  contract TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed', 'superseded')),
  envelope TEXT NOT NULL,
  result TEXT,
  created_at TEXT NOT NULL,
  settled_at TEXT,
  PRIMARY KEY (tenant, root, case_id, id),
  UNIQUE (tenant, id),
  UNIQUE (tenant, root, sender, handoff_id, attempt),
  FOREIGN KEY (tenant, root, case_id) REFERENCES cases (tenant, root, case_id),
  FOREIGN KEY (tenant, root, sender, handoff_id, attempt)
    REFERENCES decisions (tenant, root, sender, handoff_id, attempt),
  CHECK ((state = 'open') = (settled_at IS NULL))
) STRICT;
CREATE UNIQUE INDEX work_items_one_open ON work_items (tenant, root, case_id) WHERE state = 'open';
CREATE INDEX work_items_by_owner ON work_items (tenant, owner, state);

CREATE TABLE notes (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  id TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  writer TEXT NOT NULL,
  text TEXT NOT NULL,
  at TEXT NOT NULL,
  PRIMARY KEY (tenant, root, case_id, id),
  FOREIGN KEY (tenant, root, case_id) REFERENCES cases (tenant, root, case_id)
) STRICT;

CREATE TABLE effects (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  key TEXT NOT NULL,
  operation TEXT NOT NULL,
  amount TEXT,
  currency TEXT,
  epoch INTEGER NOT NULL,
  owner TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('started', 'done', 'failed', 'unknown')),
  started_at TEXT NOT NULL,
  started_seq INTEGER NOT NULL,
  limit_at TEXT NOT NULL,
  settled_at TEXT,
  outcome TEXT,
  PRIMARY KEY (tenant, root, case_id, key),
  FOREIGN KEY (tenant, root, case_id) REFERENCES cases (tenant, root, case_id),
  CHECK ((amount IS NULL) = (currency IS NULL)),
  CHECK ((state = 'started') = (settled_at IS NULL))
) STRICT;

CREATE TABLE tasks (
  tenant TEXT NOT NULL,
  id TEXT NOT NULL,
  peer TEXT NOT NULL,
  context_id TEXT NOT NULL,
  state TEXT NOT NULL,
  version INTEGER NOT NULL CHECK (version >= 1),
  status_at TEXT NOT NULL,
  task TEXT NOT NULL,
  handoff_id TEXT,
  PRIMARY KEY (tenant, id)
) STRICT;
CREATE INDEX tasks_by_status ON tasks (tenant, peer, status_at DESC, id);

CREATE TABLE audit (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  seq INTEGER NOT NULL CHECK (seq >= 1),
  entry TEXT NOT NULL,
  prev_hash TEXT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (tenant, root, case_id, seq),
  UNIQUE (tenant, root, case_id, prev_hash)
) STRICT;
CREATE INDEX audit_firsts ON audit (tenant, root, case_id) WHERE seq = 1;

CREATE TRIGGER cases_identity BEFORE UPDATE ON cases
WHEN NEW.tenant IS NOT OLD.tenant OR NEW.root IS NOT OLD.root OR NEW.case_id IS NOT OLD.case_id
  OR NEW.kind IS NOT OLD.kind OR NEW.opened_by IS NOT OLD.opened_by OR NEW.opened_at IS NOT OLD.opened_at
BEGIN SELECT RAISE(ABORT, 'a case keeps its identity'); END;

CREATE TRIGGER cases_move BEFORE UPDATE ON cases
WHEN (NEW.epoch IS NOT OLD.epoch OR NEW.owner IS NOT OLD.owner)
  AND NOT (NEW.epoch = OLD.epoch + 1 AND NEW.owner <> OLD.owner)
BEGIN SELECT RAISE(ABORT, 'owner and epoch change together, by one'); END;

CREATE TRIGGER cases_final BEFORE UPDATE ON cases WHEN OLD.status = 'closed'
BEGIN SELECT RAISE(ABORT, 'a closed case is final'); END;

CREATE TRIGGER cases_close BEFORE UPDATE ON cases
WHEN NEW.status = 'closed' AND (
  EXISTS (SELECT 1 FROM offers o WHERE o.tenant = OLD.tenant AND o.root = OLD.root
    AND o.case_id = OLD.case_id AND o.state IN ('intended', 'offered', 'in_doubt'))
  OR EXISTS (SELECT 1 FROM work_items w WHERE w.tenant = OLD.tenant AND w.root = OLD.root
    AND w.case_id = OLD.case_id AND w.state = 'open')
  OR EXISTS (SELECT 1 FROM effects e WHERE e.tenant = OLD.tenant AND e.root = OLD.root
    AND e.case_id = OLD.case_id AND e.state IN ('started', 'unknown')))
BEGIN SELECT RAISE(ABORT, 'a case with something out cannot close'); END;

CREATE TRIGGER cases_kept BEFORE DELETE ON cases
BEGIN SELECT RAISE(ABORT, 'cases are kept'); END;

CREATE TRIGGER offers_bytes BEFORE UPDATE ON offers
WHEN NEW.tenant IS NOT OLD.tenant OR NEW.root IS NOT OLD.root OR NEW.case_id IS NOT OLD.case_id
  OR NEW.sender IS NOT OLD.sender OR NEW.handoff_id IS NOT OLD.handoff_id OR NEW.attempt IS NOT OLD.attempt
  OR NEW.kind IS NOT OLD.kind OR NEW.to_agent IS NOT OLD.to_agent OR NEW.contract IS NOT OLD.contract
  OR NEW.skill IS NOT OLD.skill OR NEW.epoch IS NOT OLD.epoch OR NEW.digest IS NOT OLD.digest
  OR NEW.message IS NOT OLD.message OR NEW.accept_by IS NOT OLD.accept_by
  OR NEW.intended_at IS NOT OLD.intended_at OR NEW.intended_seq IS NOT OLD.intended_seq
  OR NEW.withheld IS NOT OLD.withheld
BEGIN SELECT RAISE(ABORT, 'the bytes of an attempt never change'); END;

CREATE TRIGGER offers_final BEFORE UPDATE ON offers
WHEN OLD.state IN ('accepted', 'rejected', 'withdrawn', 'expired')
  AND (NEW.state IS NOT OLD.state OR NEW.code IS NOT OLD.code OR NEW.closed_at IS NOT OLD.closed_at
    OR OLD.receipt IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'a closed offer is final'); END;

CREATE TRIGGER offers_decided BEFORE UPDATE ON offers
WHEN NEW.state IN ('accepted', 'rejected', 'withdrawn', 'expired') AND NOT EXISTS (
  SELECT 1 FROM decisions d WHERE d.tenant = OLD.tenant AND d.root = OLD.root AND d.sender = OLD.sender
    AND d.handoff_id = OLD.handoff_id AND d.attempt = OLD.attempt)
BEGIN SELECT RAISE(ABORT, 'only a decision closes an offer'); END;

CREATE TRIGGER offers_kept BEFORE DELETE ON offers
BEGIN SELECT RAISE(ABORT, 'offers are kept'); END;

CREATE TRIGGER decisions_final BEFORE UPDATE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions are final'); END;

CREATE TRIGGER decisions_kept BEFORE DELETE ON decisions
BEGIN SELECT RAISE(ABORT, 'decisions are kept'); END;

CREATE TRIGGER work_items_final BEFORE UPDATE ON work_items WHEN OLD.state <> 'open'
BEGIN SELECT RAISE(ABORT, 'a settled work item is final'); END;

CREATE TRIGGER work_items_kept BEFORE DELETE ON work_items
BEGIN SELECT RAISE(ABORT, 'work items are kept'); END;

CREATE TRIGGER notes_final BEFORE UPDATE ON notes
BEGIN SELECT RAISE(ABORT, 'notes are final'); END;

CREATE TRIGGER notes_kept BEFORE DELETE ON notes
BEGIN SELECT RAISE(ABORT, 'notes are kept'); END;

CREATE TRIGGER effects_steps BEFORE UPDATE ON effects
WHEN NEW.key IS NOT OLD.key OR NOT (
  (OLD.state = 'started' AND NEW.state IN ('done', 'failed', 'unknown'))
  OR (OLD.state = 'unknown' AND NEW.state IN ('done', 'failed'))
  OR (OLD.state = 'failed' AND NEW.state = 'started'))
BEGIN SELECT RAISE(ABORT, 'an effect does not go that way'); END;

CREATE TRIGGER effects_kept BEFORE DELETE ON effects
BEGIN SELECT RAISE(ABORT, 'effects are kept'); END;

CREATE TRIGGER tasks_final BEFORE UPDATE ON tasks
WHEN OLD.state IN ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED')
BEGIN SELECT RAISE(ABORT, 'a terminal task is final'); END;

CREATE TRIGGER tasks_kept BEFORE DELETE ON tasks
WHEN OLD.state IN ('TASK_STATE_COMPLETED', 'TASK_STATE_FAILED', 'TASK_STATE_CANCELED', 'TASK_STATE_REJECTED')
BEGIN SELECT RAISE(ABORT, 'terminal tasks are kept'); END;

CREATE TRIGGER audit_next BEFORE INSERT ON audit
WHEN NEW.seq <> 1 + coalesce((SELECT max(a.seq) FROM audit a
    WHERE a.tenant = NEW.tenant AND a.root = NEW.root AND a.case_id = NEW.case_id), 0)
  OR NEW.prev_hash <> coalesce((SELECT a.hash FROM audit a
    WHERE a.tenant = NEW.tenant AND a.root = NEW.root AND a.case_id = NEW.case_id AND a.seq = NEW.seq - 1), '')
BEGIN SELECT RAISE(ABORT, 'the audit chain goes on without gap or fork'); END;

CREATE TRIGGER audit_final BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;

CREATE TRIGGER audit_kept BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
`;
