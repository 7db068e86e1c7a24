/** Ordered by its bytes whatever the database's locale, as in the other storages. */
const TEXT = 'TEXT COLLATE "C"';

const KEY = 'tenant root sender handoff_id attempt';
const PENDING = `${KEY} case_id kind to_agent contract digest message token_id task_id accept_by state clarifications received_at holder rev`;
const TASK = 'tenant id peer state version status_at task handoff_id';

const TYPES: Readonly<Record<string, string>> = {
  n: 'int',
  attempt: 'int',
  rev: 'bigint',
  version: 'bigint',
};

const columnsOf = (columns: string) => columns.split(' ');
const quoted = (columns: string, prefix = '') =>
  columnsOf(columns)
    .map((column) => `${prefix}"${column}"`)
    .join(', ');
const same = (columns: string, left: string, right: string) =>
  columnsOf(columns)
    .map((column) => `${left}.${column} = ${right}.${column}`)
    .join(' AND ');
const differ = (columns: string) =>
  columnsOf(columns)
    .map((column) => `NEW.${column} IS DISTINCT FROM OLD.${column}`)
    .join(' OR ');

/** Rows of one list of the batch, as a table. */
const rows = (list: string, columns: string) =>
  `jsonb_to_recordset(batch -> '${list}') AS r(${columnsOf(`n ${columns}`)
    .map((column) => `"${column}" ${TYPES[column] ?? TEXT}`)
    .join(', ')})`;

/** Changes one row for each of one list; the first that is not as it was judged ends them all. */
const each = (list: string, columns: string, update: string) => `
  IF batch ? '${list}' THEN
    FOR r IN SELECT * FROM ${rows(list, columns)} WHERE n = ANY (go) ORDER BY n LOOP
      ${update};
      IF NOT FOUND THEN RAISE EXCEPTION '${list}: not as it has to be' USING ERRCODE = 'HL002'; END IF;
    END LOOP;
  END IF;`;

const refuse = (name: string, event: string, message: string, when: string) => `
CREATE FUNCTION holdfast.${name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ${when} THEN
    RAISE EXCEPTION '${message}' USING ERRCODE = 'HL001';
  END IF;
  RETURN coalesce(NEW, OLD);
END $$;
CREATE TRIGGER ${name} BEFORE ${event} ON holdfast.pending FOR EACH ROW EXECUTE FUNCTION holdfast.${name}();`;

/** Columns of a slice, in the order of `holdfast.slices` as it was. */
const SLICE = `n int, clock text, seq bigint, hash text, quarantined boolean, offer_quarantined boolean,
  decision_quarantined boolean, other_quarantined boolean, until text, definition text, revision bigint,
  "case" json, open_offer json, open_work json, effects json, offer json, decision json, last int, item json, task json`;
const ASKED = `"n" int, "tenant" ${TEXT}, "root" ${TEXT}, "case_id" ${TEXT}, "sender" ${TEXT}, "handoff_id" ${TEXT}, "attempt" int`;

/**
 * Offers that were received and not decided at once, each with the A2A task by which its sender follows it. A row ends with the decision
 * under its key and is kept for its questions and answers; the message goes.
 */
export const sql = `
CREATE TABLE holdfast.pending (
  tenant ${TEXT} NOT NULL,
  root ${TEXT} NOT NULL,
  sender ${TEXT} NOT NULL,
  handoff_id ${TEXT} NOT NULL,
  attempt INTEGER NOT NULL,
  case_id ${TEXT} NOT NULL,
  kind ${TEXT} NOT NULL,
  to_agent ${TEXT} NOT NULL,
  contract ${TEXT} NOT NULL,
  digest ${TEXT} NOT NULL,
  message ${TEXT},
  token_id ${TEXT} NOT NULL,
  task_id ${TEXT} NOT NULL,
  accept_by ${TEXT} NOT NULL,
  state ${TEXT} NOT NULL CHECK (state IN ('deciding', 'asked', 'waiting', 'decided')),
  clarifications ${TEXT} NOT NULL CHECK (clarifications::json IS NOT NULL),
  received_at ${TEXT} NOT NULL,
  holder ${TEXT} REFERENCES holdfast.holders (holder) ON DELETE SET NULL,
  rev BIGINT NOT NULL CHECK (rev >= 1),
  ord BIGINT GENERATED ALWAYS AS IDENTITY,
  PRIMARY KEY (tenant, root, sender, handoff_id, attempt),
  FOREIGN KEY (tenant, task_id) REFERENCES holdfast.tasks (tenant, id),
  CHECK ((state = 'decided') = (message IS NULL))
);
CREATE UNIQUE INDEX pending_by_task ON holdfast.pending (task_id);
CREATE INDEX pending_by_case ON holdfast.pending (case_id);
CREATE INDEX pending_open_case ON holdfast.pending (case_id, root, tenant) WHERE state <> 'decided';
CREATE INDEX pending_undecided ON holdfast.pending (to_agent, ord) WHERE state <> 'decided';
CREATE INDEX pending_by_holder ON holdfast.pending (holder) WHERE holder IS NOT NULL;
${refuse('pending_identity', 'UPDATE', 'a stored offer keeps its bytes', `${differ(`${KEY} case_id to_agent digest task_id accept_by`)} OR (NEW.message IS DISTINCT FROM OLD.message AND NEW.message IS NOT NULL)`)}
${refuse('pending_final', 'UPDATE', 'a decided offer is final', "OLD.state = 'decided'")}
${refuse('pending_decided', 'UPDATE', 'a stored offer ends with its decision', `NEW.state = 'decided' AND NOT EXISTS (SELECT 1 FROM holdfast.decisions d WHERE ${same(KEY, 'd', 'NEW')})`)}
${refuse('pending_kept', 'DELETE', 'stored offers are kept', 'true')}
CREATE TRIGGER pending_not_emptied BEFORE TRUNCATE ON holdfast.pending
  EXECUTE FUNCTION holdfast.refuse('stored offers are kept');

-- What was there is one part of it now. The task of an offer is saved before anybody is told of it; the offer itself behind its decision.
ALTER FUNCTION holdfast.apply(int[], jsonb, timestamptz) RENAME TO apply_before_pending;

CREATE FUNCTION holdfast.apply(go int[], batch jsonb, clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  r record;
BEGIN
${each(
  'save_offer_task',
  TASK,
  `UPDATE holdfast.tasks t SET state = r.state, version = r.version, status_at = r.status_at, task = r.task
        WHERE ${same('tenant id', 't', 'r')} AND t.peer IS NOT DISTINCT FROM r.peer AND t.version = r.version - 1
          AND t.handoff_id IS NOT DISTINCT FROM r.handoff_id AND t.handoff_id IS NOT NULL`,
)}
  PERFORM holdfast.apply_before_pending(go, batch, clock);
  IF batch ? 'add_pending' THEN
    INSERT INTO holdfast.pending (${quoted(PENDING)})
      SELECT ${quoted(PENDING, 'r.')} FROM ${rows('add_pending', PENDING)} WHERE n = ANY (go) ORDER BY n;
  END IF;
${each(
  'set_pending',
  PENDING,
  `UPDATE holdfast.pending p SET state = r.state, message = r.message, clarifications = r.clarifications,
        holder = r.holder, rev = r.rev WHERE ${same(KEY, 'p', 'r')} AND p.rev = r.rev - 1`,
)}
END $$;

-- The undecided offers of the case, and the one under the key in whatever state, each with its task.
ALTER FUNCTION holdfast.slices(jsonb) RENAME TO slices_before_pending;

CREATE FUNCTION holdfast.slices(batch jsonb) RETURNS TABLE (${SLICE}, pending json, pending_tasks json)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT s.*, p.rows, p.tasks FROM holdfast.slices_before_pending(batch) s
  LEFT JOIN LATERAL (
    SELECT json_agg(f.pending) AS rows, json_agg(f.task) AS tasks FROM jsonb_to_recordset(batch -> 'asked') AS r(${ASKED}),
      LATERAL (
        SELECT row_to_json(q) AS pending, row_to_json(t) AS task FROM (
          SELECT * FROM holdfast.pending o WHERE ${same(KEY, 'o', 'r')}
          UNION
          SELECT * FROM holdfast.pending o WHERE o.case_id = r.case_id AND o.root = r.root AND o.tenant = r.tenant
            AND o.state <> 'decided') q
        JOIN holdfast.tasks t ON t.tenant = q.tenant AND t.id = q.task_id) f
    WHERE r.n = s.n) p ON true;
END $$;
`;
