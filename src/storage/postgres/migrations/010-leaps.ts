const REF = ['tenant', 'root', 'case_id'];
const TRANSFER = [
  ...REF,
  'sender',
  'handoff_id',
  'attempt',
  'to_agent',
  'old_epoch',
  'new_epoch',
  'digest',
  'receipt',
  'receipt_key',
];
const PASSED = [
  ...TRANSFER,
  'owner',
  'contract',
  'constraints',
  'hops',
  'tasks_left',
  'guard_owner',
  'guard_epoch',
];

const TYPES: Readonly<Record<string, string>> = {
  attempt: 'int',
  old_epoch: 'bigint',
  new_epoch: 'bigint',
  guard_epoch: 'bigint',
  tasks_left: 'bigint',
};

const rows = (list: string, columns: readonly string[]) =>
  `jsonb_to_recordset(batch -> '${list}') AS r(n int, ${columns
    .map((column) => `${column} ${TYPES[column] ?? 'text COLLATE "C"'}`)
    .join(', ')})`;

/**
 * A node may leave epochs out between owners of its own: what it proves so is kept before the case moves by it. A case passes through such a
 * one in its place among the others that a commit carries.
 */
export const sql = `
CREATE OR REPLACE FUNCTION holdfast.cases_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.epoch IS DISTINCT FROM OLD.epoch OR NEW.owner IS DISTINCT FROM OLD.owner)
    AND NOT (NEW.epoch = OLD.epoch + 1 AND NEW.owner <> OLD.owner)
  THEN
    IF NOT (NEW.epoch > OLD.epoch AND NEW.owner = OLD.owner AND EXISTS (SELECT 1 FROM holdfast.quarantines q
        WHERE q.tenant = OLD.tenant AND q.root = OLD.root AND q.case_id = OLD.case_id))
      AND NOT (NEW.epoch > OLD.epoch + 1 AND EXISTS (SELECT 1 FROM holdfast.transfers t
        WHERE t.tenant = OLD.tenant AND t.root = OLD.root AND t.case_id = OLD.case_id
          AND t.new_epoch = NEW.epoch AND t.to_agent = NEW.owner AND t.old_epoch > OLD.epoch))
    THEN
      RAISE EXCEPTION 'owner and epoch change together, by one' USING ERRCODE = 'HL001';
    END IF;
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE FUNCTION holdfast.pass_cases(go int[], batch jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM ${rows('pass_case', PASSED)} WHERE n = ANY (go) ORDER BY n, guard_epoch LOOP
    IF r.new_epoch IS NOT NULL THEN
      INSERT INTO holdfast.transfers (${TRANSFER.join(', ')})
        VALUES (${TRANSFER.map((column) => `r.${column}`).join(', ')});
    END IF;
    UPDATE holdfast.cases c SET owner = r.owner, epoch = coalesce(r.new_epoch, c.epoch + 1), contract = r.contract,
      constraints = r.constraints, hops = r.hops, tasks_left = r.tasks_left
      WHERE c.tenant = r.tenant AND c.root = r.root AND c.case_id = r.case_id
        AND c.owner IS NOT DISTINCT FROM r.guard_owner AND c.epoch = r.guard_epoch AND c.status = 'open';
    IF NOT FOUND THEN
      RAISE EXCEPTION 'pass_case: not as it has to be' USING ERRCODE = 'HL001';
    END IF;
  END LOOP;
END $$;
`;
