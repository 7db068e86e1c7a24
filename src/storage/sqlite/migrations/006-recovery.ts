/**
 * A person may let a quarantined case go on. Until then its epoch goes up as far as it takes, since none is issued twice, and the
 * quarantine does not end before it has come up to what was witnessed.
 */
export const sql = `
DROP TRIGGER cases_move;

CREATE TRIGGER cases_move BEFORE UPDATE ON cases
WHEN (NEW.epoch IS NOT OLD.epoch OR NEW.owner IS NOT OLD.owner)
  AND NOT (NEW.epoch = OLD.epoch + 1 AND NEW.owner <> OLD.owner)
  AND NOT (NEW.epoch > OLD.epoch AND NEW.owner = OLD.owner AND EXISTS (SELECT 1 FROM quarantines q
    WHERE q.tenant = OLD.tenant AND q.root = OLD.root AND q.case_id = OLD.case_id))
BEGIN SELECT RAISE(ABORT, 'owner and epoch change together, by one'); END;

CREATE TRIGGER quarantines_kept BEFORE DELETE ON quarantines
WHEN EXISTS (SELECT 1 FROM cases c WHERE c.tenant = OLD.tenant AND c.root = OLD.root AND c.case_id = OLD.case_id
  AND c.epoch < json_extract(OLD.witnessed, '$.epoch'))
BEGIN SELECT RAISE(ABORT, 'a quarantine stays until the epoch has come up to the one witnessed'); END;
`;
