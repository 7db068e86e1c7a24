import { FENCE_FREEZE_SQL } from '../../../fence/index.js';

const REF = ['tenant', 'root', 'case_id'];

/**
 * While a case is offered to a receiver with a ledger of its own, fences let nothing be written. The intent changes nothing in the row
 * of its case, and still writes it: the lock keeps the intent behind transactions that have presented the case, and the new version
 * keeps a transaction that took its snapshot before the intent from presenting it after. The mode of a kind never changes; as a column
 * it costs the presentation of a shared case nothing.
 */
export const sql = `
CREATE FUNCTION holdfast.is_separate(definition text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce((definition::json -> 'mode')::text = '"separate"', false)
$$;
ALTER TABLE holdfast.kinds ADD COLUMN separate BOOLEAN NOT NULL
  GENERATED ALWAYS AS (holdfast.is_separate(definition)) STORED;
${FENCE_FREEZE_SQL}
CREATE FUNCTION holdfast.freeze_cases(go int[], batch jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r record;
BEGIN
  FOR r IN SELECT * FROM jsonb_to_recordset(batch -> 'freeze_case') AS r(n int, ${REF.map(
    (column) => `${column} text COLLATE "C"`,
  ).join(', ')}, guard_owner text COLLATE "C", guard_epoch bigint) WHERE n = ANY (go) ORDER BY n LOOP
    UPDATE holdfast.cases c SET epoch = c.epoch
      WHERE ${REF.map((column) => `c.${column} = r.${column}`).join(' AND ')}
        AND c.owner IS NOT DISTINCT FROM r.guard_owner AND c.epoch = r.guard_epoch AND c.status = 'open';
    IF NOT FOUND THEN
      RAISE EXCEPTION 'freeze_case: not as it has to be' USING ERRCODE = 'HL001';
    END IF;
  END LOOP;
END $$;

-- As before, with what freezes cases.
CREATE OR REPLACE FUNCTION holdfast.attempt(go int[], batch jsonb, clock timestamptz)
RETURNS TABLE (n int, status text, detail text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  half int := cardinality(go) / 2;
BEGIN
  BEGIN
    IF batch ? 'freeze_case' THEN PERFORM holdfast.freeze_cases(go, batch); END IF;
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
