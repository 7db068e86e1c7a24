const TEXT = 'TEXT COLLATE "C"';

const TYPES: Readonly<Record<string, string>> = { n: 'int', rev: 'bigint' };

const quoted = (columns: string, prefix = '') =>
  columns
    .split(' ')
    .map((column) => `${prefix}"${column}"`)
    .join(', ');

const each = (list: string, columns: string, work: string) => `
  IF batch ? '${list}' THEN
    FOR r IN SELECT * FROM jsonb_to_recordset(batch -> '${list}') AS r(${`n ${columns}`
      .split(' ')
      .map((column) => `"${column}" ${TYPES[column] ?? TEXT}`)
      .join(', ')}) WHERE n = ANY (go) ORDER BY n LOOP
      ${work};
    END LOOP;
  END IF;`;

const orElse = (list: string) =>
  `IF NOT FOUND THEN RAISE EXCEPTION '${list}: not as it has to be' USING ERRCODE = 'HL002'; END IF`;

const INCARNATION = 'agent incarnation since holders rev';
const AWAITED = 'agent peer incarnation contracts state since by reason';
const HEARD = 'tenant agent peer incarnation since open rev';
const AT = 'tenant agent peer';

/** Puts the row in the place of the one whose `rev` is one below. */
const next = (
  table: string,
  key: string,
  columns: string,
) => `INSERT INTO holdfast.${table} AS c (${quoted(columns)})
        VALUES (${quoted(columns, 'r.')}) ON CONFLICT (${quoted(key)}) DO UPDATE SET ${columns
          .split(' ')
          .filter((column) => !key.split(' ').includes(column))
          .map((column) => `"${column}" = excluded."${column}"`)
          .join(', ')} WHERE c.rev = excluded.rev - 1;
      ${orElse(table)}`;

/**
 * Lives of agents on the ledger, the peers that have to answer each, and what peers have said of theirs. An acceptance holds the row of
 * its sender until it has committed, so that a sender that says something new waits for it, and then is told of it, or is before it. A
 * case of a separate kind goes on at the very epoch that was witnessed: its quarantine may end one below, for the step that leads there.
 */
export const sql = `
CREATE TABLE holdfast.incarnations (
  agent ${TEXT} PRIMARY KEY,
  incarnation ${TEXT} NOT NULL CHECK (incarnation <> ''),
  since ${TEXT} NOT NULL,
  holders ${TEXT} NOT NULL,
  rev BIGINT NOT NULL CHECK (rev >= 1)
);

CREATE TABLE holdfast.awaited_peers (
  agent ${TEXT} NOT NULL REFERENCES holdfast.incarnations (agent),
  peer ${TEXT} NOT NULL,
  incarnation ${TEXT} NOT NULL,
  contracts ${TEXT} NOT NULL,
  state ${TEXT} NOT NULL CHECK (state IN ('waiting', 'answered', 'waived')),
  since ${TEXT} NOT NULL,
  by ${TEXT},
  reason ${TEXT},
  PRIMARY KEY (agent, peer),
  CHECK ((by IS NULL) = (reason IS NULL)),
  CHECK (state <> 'waived' OR by IS NOT NULL)
);

CREATE TABLE holdfast.peer_incarnations (
  tenant ${TEXT} NOT NULL,
  agent ${TEXT} NOT NULL,
  peer ${TEXT} NOT NULL,
  incarnation ${TEXT} NOT NULL,
  since ${TEXT} NOT NULL,
  open ${TEXT} NOT NULL,
  rev BIGINT NOT NULL CHECK (rev >= 0),
  PRIMARY KEY (tenant, agent, peer)
);

CREATE INDEX transfers_by_sender ON holdfast.transfers (sender);
CREATE INDEX transfers_by_receiver ON holdfast.transfers (to_agent);

CREATE FUNCTION holdfast.incarnation_forward() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.rev <> OLD.rev + 1 OR (NEW.incarnation <> OLD.incarnation AND NEW.since <= OLD.since) THEN
    RAISE EXCEPTION 'an incarnation is followed by a later one' USING ERRCODE = 'HL001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER incarnations_forward BEFORE UPDATE ON holdfast.incarnations
  FOR EACH ROW EXECUTE FUNCTION holdfast.incarnation_forward();
CREATE TRIGGER incarnations_delete BEFORE DELETE ON holdfast.incarnations
  FOR EACH ROW EXECUTE FUNCTION holdfast.refuse('the incarnation of an agent is kept');
CREATE TRIGGER peer_incarnations_forward BEFORE UPDATE ON holdfast.peer_incarnations
  FOR EACH ROW EXECUTE FUNCTION holdfast.incarnation_forward();

CREATE OR REPLACE FUNCTION holdfast.quarantines_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM holdfast.cases c WHERE c.tenant = OLD.tenant AND c.root = OLD.root AND c.case_id = OLD.case_id
    AND c.epoch < (OLD.witnessed::json ->> 'epoch')::bigint - coalesce((SELECT k.separate FROM holdfast.kinds k
      WHERE k.tenant = c.tenant AND k.kind = c.kind)::int, 0))
  THEN
    RAISE EXCEPTION 'a quarantine stays until the epoch has come up to the one witnessed' USING ERRCODE = 'HL001';
  END IF;
  RETURN OLD;
END $$;

-- What was there is one part of it now.
ALTER FUNCTION holdfast.apply(int[], jsonb, timestamptz) RENAME TO apply_with_push;

CREATE FUNCTION holdfast.apply(go int[], batch jsonb, clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r record;
BEGIN
${each(
  'check_heard',
  `${AT} rev`,
  `INSERT INTO holdfast.peer_incarnations (${quoted(HEARD)}) VALUES (r.tenant, r.agent, r.peer, '', '', '[]', 0)
        ON CONFLICT DO NOTHING;
      PERFORM 1 FROM holdfast.peer_incarnations c
        WHERE c.tenant = r.tenant AND c.agent = r.agent AND c.peer = r.peer AND c.rev = r.rev FOR SHARE;
      ${orElse('check_heard')}`,
)}
  PERFORM holdfast.apply_with_push(go, batch, clock);
${each('set_incarnation', INCARNATION, next('incarnations', 'agent', INCARNATION))}
${each('drop_awaited', 'agent', 'DELETE FROM holdfast.awaited_peers c WHERE c.agent = r.agent')}
${each(
  'set_awaited',
  AWAITED,
  `INSERT INTO holdfast.awaited_peers AS c (${quoted(AWAITED)}) VALUES (${quoted(AWAITED, 'r.')})
        ON CONFLICT (agent, peer) DO UPDATE SET incarnation = excluded.incarnation, contracts = excluded.contracts,
          state = excluded.state, since = excluded.since, by = excluded.by, reason = excluded.reason`,
)}
${each('set_heard', HEARD, next('peer_incarnations', AT, HEARD))}
END $$;
`;
