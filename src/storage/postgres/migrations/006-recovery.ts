/**
 * A person may let a quarantined case go on. Until then its epoch goes up as far as it takes, since none is issued twice, and the
 * quarantine does not end before it has come up to what was witnessed. Both are looked at where a change is another than usual only.
 */
export const sql = `
CREATE OR REPLACE FUNCTION holdfast.cases_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.epoch IS DISTINCT FROM OLD.epoch OR NEW.owner IS DISTINCT FROM OLD.owner)
    AND NOT (NEW.epoch = OLD.epoch + 1 AND NEW.owner <> OLD.owner)
  THEN
    IF NOT (NEW.epoch > OLD.epoch AND NEW.owner = OLD.owner) OR NOT EXISTS (SELECT 1 FROM holdfast.quarantines q
      WHERE q.tenant = OLD.tenant AND q.root = OLD.root AND q.case_id = OLD.case_id)
    THEN
      RAISE EXCEPTION 'owner and epoch change together, by one' USING ERRCODE = 'HL001';
    END IF;
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION holdfast.quarantines_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM holdfast.cases c WHERE c.tenant = OLD.tenant AND c.root = OLD.root AND c.case_id = OLD.case_id
    AND c.epoch < (OLD.witnessed::json ->> 'epoch')::bigint)
  THEN
    RAISE EXCEPTION 'a quarantine stays until the epoch has come up to the one witnessed' USING ERRCODE = 'HL001';
  END IF;
  RETURN OLD;
END $$;
CREATE TRIGGER quarantines_kept BEFORE DELETE ON holdfast.quarantines
  FOR EACH ROW EXECUTE FUNCTION holdfast.quarantines_kept();
`;
