/**
 * `INSERT OR REPLACE` and `UPDATE OR REPLACE` remove the row in their way without firing its delete trigger. So that kept rows are
 * kept against these too, no insert may meet a row under any of its keys, and no row moves to another key.
 */
export const sql = `
CREATE TRIGGER cases_once BEFORE INSERT ON cases
WHEN EXISTS (SELECT 1 FROM cases c WHERE c.tenant = NEW.tenant AND c.root = NEW.root AND c.case_id = NEW.case_id)
BEGIN SELECT RAISE(ABORT, 'cases are kept'); END;

CREATE TRIGGER offers_once BEFORE INSERT ON offers
WHEN EXISTS (SELECT 1 FROM offers o WHERE o.tenant = NEW.tenant AND o.root = NEW.root AND o.sender = NEW.sender
    AND o.handoff_id = NEW.handoff_id AND o.attempt = NEW.attempt)
  OR EXISTS (SELECT 1 FROM offers o WHERE o.tenant = NEW.tenant AND o.root = NEW.root AND o.case_id = NEW.case_id
    AND o.state IN ('intended', 'offered', 'in_doubt') AND NEW.state IN ('intended', 'offered', 'in_doubt'))
BEGIN SELECT RAISE(ABORT, 'offers are kept, and one is open'); END;

CREATE TRIGGER decisions_once BEFORE INSERT ON decisions
WHEN EXISTS (SELECT 1 FROM decisions d WHERE d.tenant = NEW.tenant AND d.root = NEW.root AND d.sender = NEW.sender
    AND d.handoff_id = NEW.handoff_id AND d.attempt = NEW.attempt)
  OR NEW.verdict = 'accepted' AND EXISTS (SELECT 1 FROM decisions d WHERE d.tenant = NEW.tenant
    AND d.root = NEW.root AND d.case_id = NEW.case_id AND d.epoch_after = NEW.epoch_after AND d.verdict = 'accepted')
BEGIN SELECT RAISE(ABORT, 'decisions are kept'); END;

CREATE TRIGGER work_items_once BEFORE INSERT ON work_items
WHEN EXISTS (SELECT 1 FROM work_items w WHERE w.tenant = NEW.tenant AND w.id = NEW.id)
  OR EXISTS (SELECT 1 FROM work_items w WHERE w.tenant = NEW.tenant AND w.root = NEW.root AND w.sender = NEW.sender
    AND w.handoff_id = NEW.handoff_id AND w.attempt = NEW.attempt)
  OR NEW.state = 'open' AND EXISTS (SELECT 1 FROM work_items w WHERE w.tenant = NEW.tenant AND w.root = NEW.root
    AND w.case_id = NEW.case_id AND w.state = 'open')
BEGIN SELECT RAISE(ABORT, 'work items are kept, and one is open'); END;

CREATE TRIGGER work_items_identity BEFORE UPDATE ON work_items
WHEN NEW.tenant IS NOT OLD.tenant OR NEW.root IS NOT OLD.root OR NEW.case_id IS NOT OLD.case_id
  OR NEW.id IS NOT OLD.id OR NEW.sender IS NOT OLD.sender OR NEW.handoff_id IS NOT OLD.handoff_id
  OR NEW.attempt IS NOT OLD.attempt OR NEW.owner IS NOT OLD.owner OR NEW.epoch IS NOT OLD.epoch
  OR NEW.contract IS NOT OLD.contract OR NEW.envelope IS NOT OLD.envelope OR NEW.created_at IS NOT OLD.created_at
BEGIN SELECT RAISE(ABORT, 'a work item keeps its identity'); END;

CREATE TRIGGER notes_once BEFORE INSERT ON notes
WHEN EXISTS (SELECT 1 FROM notes n WHERE n.tenant = NEW.tenant AND n.root = NEW.root AND n.case_id = NEW.case_id
  AND n.id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'notes are kept'); END;

CREATE TRIGGER effects_once BEFORE INSERT ON effects
WHEN EXISTS (SELECT 1 FROM effects e WHERE e.tenant = NEW.tenant AND e.root = NEW.root AND e.case_id = NEW.case_id
  AND e.key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'effects are kept'); END;

CREATE TRIGGER effects_identity BEFORE UPDATE ON effects
WHEN NEW.tenant IS NOT OLD.tenant OR NEW.root IS NOT OLD.root OR NEW.case_id IS NOT OLD.case_id
BEGIN SELECT RAISE(ABORT, 'an effect keeps its case'); END;

CREATE TRIGGER tasks_once BEFORE INSERT ON tasks
WHEN EXISTS (SELECT 1 FROM tasks t WHERE t.tenant = NEW.tenant AND t.id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'tasks are kept'); END;

CREATE TRIGGER tasks_identity BEFORE UPDATE ON tasks
WHEN NEW.tenant IS NOT OLD.tenant OR NEW.id IS NOT OLD.id OR NEW.peer IS NOT OLD.peer
  OR NEW.handoff_id IS NOT OLD.handoff_id
BEGIN SELECT RAISE(ABORT, 'a task keeps its identity'); END;
`;
