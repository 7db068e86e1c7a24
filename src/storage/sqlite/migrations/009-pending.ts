/**
 * Offers that were received and not decided at once, each with the A2A task by which its sender follows it. A row ends with the decision
 * under its key and is kept for its questions and answers; the message goes.
 */
export const sql = `
CREATE TABLE pending (
  tenant TEXT NOT NULL,
  root TEXT NOT NULL,
  sender TEXT NOT NULL,
  handoff_id TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  case_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  to_agent TEXT NOT NULL,
  contract TEXT NOT NULL,
  digest TEXT NOT NULL,
  message TEXT,
  token_id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  accept_by TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('deciding', 'asked', 'waiting', 'decided')),
  clarifications TEXT NOT NULL CHECK (json_valid(clarifications)),
  received_at TEXT NOT NULL,
  holder TEXT REFERENCES holders (holder) ON DELETE SET NULL,
  rev INTEGER NOT NULL CHECK (rev >= 1),
  PRIMARY KEY (tenant, root, sender, handoff_id, attempt),
  UNIQUE (tenant, task_id),
  FOREIGN KEY (tenant, task_id) REFERENCES tasks (tenant, id),
  CHECK ((state = 'decided') = (message IS NULL))
) STRICT;
CREATE INDEX pending_undecided ON pending (tenant, to_agent) WHERE state <> 'decided';
CREATE INDEX pending_by_case ON pending (tenant, root, case_id);
CREATE INDEX pending_by_holder ON pending (holder) WHERE holder IS NOT NULL;

CREATE TRIGGER pending_once BEFORE INSERT ON pending
WHEN EXISTS (SELECT 1 FROM pending p WHERE p.tenant = NEW.tenant AND p.root = NEW.root AND p.sender = NEW.sender
  AND p.handoff_id = NEW.handoff_id AND p.attempt = NEW.attempt)
BEGIN SELECT RAISE(ABORT, 'stored offers are kept'); END;

CREATE TRIGGER pending_identity BEFORE UPDATE ON pending
WHEN NEW.tenant IS NOT OLD.tenant OR NEW.root IS NOT OLD.root OR NEW.sender IS NOT OLD.sender
  OR NEW.handoff_id IS NOT OLD.handoff_id OR NEW.attempt IS NOT OLD.attempt OR NEW.case_id IS NOT OLD.case_id
  OR NEW.to_agent IS NOT OLD.to_agent OR NEW.digest IS NOT OLD.digest OR NEW.task_id IS NOT OLD.task_id
  OR NEW.accept_by IS NOT OLD.accept_by OR (NEW.message IS NOT OLD.message AND NEW.message IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'a stored offer keeps its bytes'); END;

CREATE TRIGGER pending_final BEFORE UPDATE ON pending WHEN OLD.state = 'decided'
BEGIN SELECT RAISE(ABORT, 'a decided offer is final'); END;

CREATE TRIGGER pending_decided BEFORE UPDATE OF state ON pending
WHEN NEW.state = 'decided' AND NOT EXISTS (SELECT 1 FROM decisions d WHERE d.tenant = NEW.tenant AND d.root = NEW.root
  AND d.sender = NEW.sender AND d.handoff_id = NEW.handoff_id AND d.attempt = NEW.attempt)
BEGIN SELECT RAISE(ABORT, 'a stored offer ends with its decision'); END;

CREATE TRIGGER pending_kept BEFORE DELETE ON pending
BEGIN SELECT RAISE(ABORT, 'stored offers are kept'); END;
`;
