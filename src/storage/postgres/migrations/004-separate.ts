const TEXT = 'TEXT COLLATE "C"';

const REF = ['tenant', 'root', 'case_id'];
const ATTEMPT = ['sender', 'handoff_id', 'attempt'];
const TRANSFER = [
  ...REF,
  ...ATTEMPT,
  'to_agent',
  'old_epoch',
  'new_epoch',
  'digest',
  'receipt',
  'receipt_key',
];
const PASSED = [
  ...REF,
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

const kept = (event: string, level: string) =>
  `CREATE TRIGGER transfers_${event.toLowerCase()} BEFORE ${event} ON holdfast.transfers ${level}
  EXECUTE FUNCTION holdfast.refuse('transfers are kept');`;

/**
 * Changes of owner between ledgers, each proved by its receipt: H2 holds across them by the key. One commit may carry several for one
 * case, of which `apply` makes the last: those that it passed through before are made first, epoch by epoch, and all are kept after.
 * Quarantines know one more reason.
 */
export const sql = `
CREATE TABLE holdfast.transfers (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  case_id ${TEXT} NOT NULL,
  sender ${TEXT} NOT NULL,
  handoff_id ${TEXT} NOT NULL,
  attempt INTEGER NOT NULL CHECK (attempt >= 1),
  to_agent ${TEXT} NOT NULL CHECK (to_agent <> sender),
  old_epoch BIGINT NOT NULL CHECK (old_epoch >= 1),
  new_epoch BIGINT NOT NULL CHECK (new_epoch = old_epoch + 1),
  digest ${TEXT} NOT NULL,
  receipt ${TEXT} NOT NULL,
  receipt_key ${TEXT} NOT NULL,
  ord BIGINT GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (tenant, root, case_id, new_epoch),
  FOREIGN KEY (tenant, root, case_id) REFERENCES holdfast.cases (tenant, root, case_id)
);
CREATE UNIQUE INDEX transfers_one_each ON holdfast.transfers
  ((ARRAY[tenant, root, sender, handoff_id, attempt::text COLLATE "C"]));
${kept('UPDATE', 'FOR EACH ROW')}
${kept('DELETE', 'FOR EACH ROW')}
${kept('TRUNCATE', '')}

ALTER TABLE holdfast.quarantines DROP CONSTRAINT quarantines_reason_check;
ALTER TABLE holdfast.quarantines ADD CONSTRAINT quarantines_reason_check CHECK (reason IN
  ('epoch_regressed', 'audit_regressed', 'audit_forked', 'case_missing', 'receipt_contradicted'));

CREATE FUNCTION holdfast.pass_cases(go int[], batch jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM ${rows('pass_case', PASSED)} WHERE n = ANY (go) ORDER BY n, guard_epoch LOOP
    UPDATE holdfast.cases c SET owner = r.owner, epoch = c.epoch + 1, contract = r.contract, constraints = r.constraints,
      hops = r.hops, tasks_left = r.tasks_left
      WHERE c.tenant = r.tenant AND c.root = r.root AND c.case_id = r.case_id
        AND c.owner IS NOT DISTINCT FROM r.guard_owner AND c.epoch = r.guard_epoch AND c.status = 'open';
    IF NOT FOUND THEN
      RAISE EXCEPTION 'pass_case: not as it has to be' USING ERRCODE = 'HL001';
    END IF;
  END LOOP;
END $$;

CREATE FUNCTION holdfast.keep_transfers(go int[], batch jsonb) RETURNS void LANGUAGE sql AS $$
  INSERT INTO holdfast.transfers (${TRANSFER.join(', ')})
    SELECT ${TRANSFER.map((column) => `r.${column}`).join(', ')} FROM ${rows('add_transfer', TRANSFER)}
    WHERE r.n = ANY (go) ORDER BY r.n, r.new_epoch
$$;

-- As before, with what goes before and after.
CREATE OR REPLACE FUNCTION holdfast.attempt(go int[], batch jsonb, clock timestamptz)
RETURNS TABLE (n int, status text, detail text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  half int := cardinality(go) / 2;
BEGIN
  BEGIN
    IF batch ? 'pass_case' THEN PERFORM holdfast.pass_cases(go, batch); END IF;
    PERFORM holdfast.apply(go, batch, clock);
    IF batch ? 'add_transfer' THEN PERFORM holdfast.keep_transfers(go, batch); END IF;
    RETURN QUERY SELECT unnest(go), 'done', NULL::text;
    RETURN;
  EXCEPTION WHEN integrity_constraint_violation OR data_exception OR SQLSTATE 'HL001' OR SQLSTATE 'HL002' THEN
    n := go[1];
    status := CASE WHEN SQLSTATE IN ('23505', '23503', 'HL002') THEN 'conflict' ELSE 'broken' END;
    detail := SQLSTATE || ': ' || SQLERRM;
  END;
  IF half = 0 THEN
    RETURN NEXT;
  ELSE
    RETURN QUERY SELECT * FROM holdfast.attempt(go[:half], batch, clock);
    RETURN QUERY SELECT * FROM holdfast.attempt(go[half + 1:], batch, clock);
  END IF;
END $$;
`;
