/**
 * Changes of owner between ledgers, each proved by its receipt: H2 holds across them by the key. Quarantines know one more reason, for
 * which their table is made anew; a rename would look at the triggers of fenced tables, which speak of it.
 */
export const sql = `
CREATE TABLE transfers (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  sender TEXT NOT NULL,
  handoff_id TEXT NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  to_agent TEXT NOT NULL CHECK (to_agent <> sender),
  old_epoch INTEGER NOT NULL CHECK (old_epoch >= 1),
  new_epoch INTEGER NOT NULL CHECK (new_epoch = old_epoch + 1),
  digest TEXT NOT NULL,
  receipt TEXT NOT NULL,
  receipt_key TEXT NOT NULL,
  PRIMARY KEY (tenant, root, case_id, new_epoch),
  UNIQUE (tenant, root, sender, handoff_id, attempt),
  FOREIGN KEY (tenant, root, case_id) REFERENCES cases (tenant, root, case_id)
) STRICT;

CREATE TRIGGER transfers_once BEFORE INSERT ON transfers
WHEN EXISTS (SELECT 1 FROM transfers t WHERE t.tenant = NEW.tenant AND t.root = NEW.root AND t.case_id = NEW.case_id
    AND t.new_epoch = NEW.new_epoch)
  OR EXISTS (SELECT 1 FROM transfers t WHERE t.tenant = NEW.tenant AND t.root = NEW.root AND t.sender = NEW.sender
    AND t.handoff_id = NEW.handoff_id AND t.attempt = NEW.attempt)
BEGIN SELECT RAISE(ABORT, 'transfers are kept, one for each epoch'); END;

CREATE TRIGGER transfers_final BEFORE UPDATE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are final'); END;

CREATE TRIGGER transfers_kept BEFORE DELETE ON transfers
BEGIN SELECT RAISE(ABORT, 'transfers are kept'); END;

CREATE TABLE quarantines_before AS SELECT * FROM quarantines ORDER BY rowid;
DROP TABLE quarantines;
CREATE TABLE quarantines (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  case_id TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN
    ('epoch_regressed', 'audit_regressed', 'audit_forked', 'case_missing', 'receipt_contradicted')),
  witnessed TEXT NOT NULL CHECK (json_valid(witnessed)),
  found TEXT NOT NULL CHECK (json_valid(found)),
  at TEXT NOT NULL,
  PRIMARY KEY (tenant, root, case_id)
) STRICT;
INSERT INTO quarantines SELECT * FROM quarantines_before ORDER BY rowid;
DROP TABLE quarantines_before;
`;
