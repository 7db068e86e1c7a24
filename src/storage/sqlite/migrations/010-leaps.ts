/**
 * A node may leave epochs out between owners of its own: what it proves so is kept before the case moves by it.
 */
export const sql = `
DROP TRIGGER cases_move;

CREATE TRIGGER cases_move BEFORE UPDATE ON cases
WHEN (NEW.epoch IS NOT OLD.epoch OR NEW.owner IS NOT OLD.owner)
  AND NOT (NEW.epoch = OLD.epoch + 1 AND NEW.owner <> OLD.owner)
  AND NOT (NEW.epoch > OLD.epoch AND NEW.owner = OLD.owner AND EXISTS (SELECT 1 FROM quarantines q
    WHERE q.tenant = OLD.tenant AND q.root = OLD.root AND q.case_id = OLD.case_id))
  AND NOT (NEW.epoch > OLD.epoch + 1 AND EXISTS (SELECT 1 FROM transfers t
    WHERE t.tenant = OLD.tenant AND t.root = OLD.root AND t.case_id = OLD.case_id
      AND t.new_epoch = NEW.epoch AND t.to_agent = NEW.owner AND t.old_epoch > OLD.epoch))
BEGIN SELECT RAISE(ABORT, 'owner and epoch change together, by one'); END;
`;
