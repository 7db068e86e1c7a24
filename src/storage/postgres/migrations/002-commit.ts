const TYPES: Readonly<Record<string, string>> = {
  n: 'int',
  attempt: 'int',
  epoch: 'bigint',
  epoch_before: 'bigint',
  epoch_after: 'bigint',
  guard_epoch: 'bigint',
  intended_seq: 'bigint',
  started_seq: 'bigint',
  revision: 'bigint',
  seq: 'bigint',
  last_seq: 'bigint',
  tasks_left: 'bigint',
  version: 'bigint',
  moves: 'boolean',
  commit_id: 'uuid',
  accept_by: 'timestamptz',
};

/** Rows of one list of the batch, as a table. Times are kept as text, but for the limit that is compared with the clock. */
const rows = (list: string, columns: string, types = TYPES) =>
  `jsonb_to_recordset(batch -> '${list}') AS r(${columns
    .split(' ')
    .map((column) => `"${column}" ${types[column] ?? 'text COLLATE "C"'}`)
    .join(', ')})`;

const quoted = (columns: string, prefix = '') =>
  columns
    .split(' ')
    .map((column) => `${prefix}"${column}"`)
    .join(', ');

const { accept_by: _, ...STORED } = TYPES;

/** Columns of what the rows of these lists are made of. */
const REF = 'tenant root case_id';
const KEY = 'tenant root sender handoff_id attempt';
const GUARD = 'guard_owner guard_epoch';
const CASE = `${REF} kind status owner epoch opened_by opened_at closed_at contract constraints hops tasks_left`;
const OFFER = `${REF} sender handoff_id attempt kind to_agent contract skill epoch digest message state code accept_by intended_at intended_seq closed_at withheld receipt receipt_key`;
const DECISION = `${KEY} case_id verdict code digest answer task_id epoch_before epoch_after decided_at`;
const WORK = `${REF} id sender handoff_id attempt owner epoch contract state envelope result created_at settled_at`;
const NOTE = `${REF} id epoch writer text at`;
const EFFECT = `${REF} key operation amount currency epoch owner state started_at started_seq limit_at settled_at outcome`;
const TASK = 'tenant id peer context_id state version status_at task handoff_id';
const QUARANTINE = `${REF} reason witnessed found at`;

const same = (columns: string, left: string, right: string) =>
  columns
    .split(' ')
    .map((column) => `${left}.${column} = ${right}.${column}`)
    .join(' AND ');

/**
 * True only while the case is open with this owner at this epoch: the fence, inside the statement that writes. A value and no
 * condition, so that it stays a look at one row by its key: as a join it might begin with all cases, where a plan is made while they
 * are few.
 */
const FENCE = `(SELECT c.owner = r.guard_owner AND c.epoch = r.guard_epoch AND c.status = 'open'
  FROM holdfast.cases c WHERE ${same(REF, 'c', 'r')})`;

/** An open work item of the case, found by its id; no other index holds for `IS NOT DISTINCT FROM`. */
const ITEM = `w.tenant = r.tenant AND w.id = r.id AND w.root IS NOT DISTINCT FROM r.root
  AND w.case_id IS NOT DISTINCT FROM r.case_id AND w.state IS NOT DISTINCT FROM 'open'`;

const failed = (list: string, code: string) =>
  `RAISE EXCEPTION '${list}: not as it has to be' USING ERRCODE = '${code}';`;

/** Makes all changes of one list in one statement; where one row is not as it has to be, none of them is made. */
const add = (list: string, columns: string, statement: string, code = 'HL001') => `
  IF batch ? '${list}' THEN
    WITH r AS MATERIALIZED (SELECT * FROM ${rows(list, `n ${columns}`, STORED)} WHERE n = ANY (go) ORDER BY n),
    made AS (${statement} RETURNING 1)
    SELECT (SELECT count(*) FROM r) - (SELECT count(*) FROM made) INTO missed;
    IF missed <> 0 THEN ${failed(list, code)} END IF;
  END IF;`;

/** Makes the changes of one list row by row, each found by its key alone; the first that is not as it has to be ends them all. */
const change = (list: string, columns: string, statement: string, code = 'HL001') => `
  IF batch ? '${list}' THEN
    FOR r IN SELECT * FROM ${rows(list, `n ${columns}`, STORED)} WHERE n = ANY (go) ORDER BY n LOOP
      ${statement};
      IF NOT FOUND THEN ${failed(list, code)} END IF;
    END LOOP;
  END IF;`;

const insert = (table: string, columns: string, where = '') =>
  `INSERT INTO holdfast.${table} (${quoted(columns)}) SELECT ${quoted(columns, 'r.')} FROM r ${where}`;

/** Whether there is such a row. An `EXISTS` may become a look at the whole table, which is kept for the other rows of the batch. */
const there = (rows: string) => `(SELECT true FROM holdfast.${rows} LIMIT 1) IS TRUE`;
const quarantined = (row: string) => there(`quarantines q WHERE ${same(REF, 'q', row)}`);

/** Locks the row of this case, in a sub-select that is no part of the join: which row it looks for is always known before. */
const lock = (table: string, strength: string, where = '', wait = '') =>
  `SELECT t.* FROM holdfast.${table} t WHERE ${same(REF, 't', 'r')} ${where} LIMIT 1 FOR ${strength} OF t ${wait}`;

/**
 * One call of \`holdfast.commit\` carries the commands that waited at one moment, each numbered \`n\`, as lists of the rows that it
 * changes. The head of a case is its version: a command says on which head it was judged, and only while that is still the head
 * may it write. Codes of our own: HL001, a guard or a trigger refuses; HL002, the row is another than the one that was judged.
 */
export const sql = `
CREATE FUNCTION holdfast.apply(go int[], batch jsonb, clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  missed bigint;
  r record;
  instant text COLLATE "C" := to_char(clock AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
BEGIN
${add('add_kind', 'tenant kind definition', insert('kinds', 'tenant kind definition revision').replace('r."revision"', '1'))}
${change(
  'replace_kind',
  'tenant kind definition revision',
  `UPDATE holdfast.kinds k SET definition = r.definition, revision = k.revision + 1
      WHERE ${same('tenant kind revision', 'k', 'r')}`,
  'HL002',
)}
${add('open_case', CASE, insert('cases', CASE))}
${change(
  'move_case',
  `${REF} owner contract constraints hops tasks_left ${GUARD}`,
  `UPDATE holdfast.cases c SET owner = r.owner, epoch = c.epoch + 1, contract = r.contract, constraints = r.constraints,
      hops = r.hops, tasks_left = r.tasks_left
      WHERE ${same(REF, 'c', 'r')} AND c.owner IS NOT DISTINCT FROM r.guard_owner AND c.epoch = r.guard_epoch AND c.status = 'open'`,
)}
${change(
  'close_case',
  `${REF} closed_at ${GUARD}`,
  `UPDATE holdfast.cases c SET status = 'closed', closed_at = r.closed_at
      WHERE ${same(REF, 'c', 'r')} AND c.owner IS NOT DISTINCT FROM r.guard_owner AND c.epoch = r.guard_epoch AND c.status = 'open'`,
)}
${add('add_task', TASK, insert('tasks', TASK))}
${change(
  'save_task',
  'tenant id peer state version status_at task',
  `UPDATE holdfast.tasks t SET state = r.state, version = r.version, status_at = r.status_at, task = r.task
      WHERE ${same('tenant id', 't', 'r')} AND t.peer IS NOT DISTINCT FROM r.peer AND t.version = r.version - 1 AND t.handoff_id IS NULL`,
  'HL002',
)}
${add('add_decision', DECISION, insert('decisions', DECISION))}
${change(
  'set_offer',
  `${KEY} from state code closed_at receipt receipt_key`,
  `UPDATE holdfast.offers o SET state = r.state, code = r.code, closed_at = r.closed_at, receipt = r.receipt,
      receipt_key = r.receipt_key WHERE ${same(KEY, 'o', 'r')} AND o.state IS NOT DISTINCT FROM r."from"`,
)}
${change(
  'supersede_work',
  `${REF} id state result settled_at`,
  `UPDATE holdfast.work_items w SET state = r.state, result = r.result, settled_at = r.settled_at
      WHERE ${ITEM}`,
)}
${change(
  'settle_work',
  `${REF} id state result settled_at ${GUARD}`,
  `UPDATE holdfast.work_items w SET state = r.state, result = r.result, settled_at = r.settled_at
      WHERE ${ITEM} AND ${FENCE}`,
)}
${add('add_work', `${WORK} ${GUARD}`, insert('work_items', WORK, `WHERE ${FENCE}`))}
${add('add_offer', `${OFFER} ${GUARD}`, insert('offers', OFFER, `WHERE ${FENCE}`))}
${add('add_note', `${NOTE} ${GUARD}`, insert('notes', NOTE, `WHERE ${FENCE}`))}
${add('start_effect', `${EFFECT} ${GUARD}`, insert('effects', EFFECT, `WHERE ${FENCE}`))}
${change(
  'restart_effect',
  `${EFFECT} ${GUARD}`,
  `UPDATE holdfast.effects e SET operation = r.operation, amount = r.amount, currency = r.currency, epoch = r.epoch,
      owner = r.owner, state = 'started', started_at = r.started_at, started_seq = r.started_seq, limit_at = r.limit_at,
      settled_at = NULL, outcome = NULL
      WHERE ${same(`${REF} key`, 'e', 'r')} AND e.state = 'failed' AND ${FENCE}`,
)}
${change(
  'settle_effect',
  `${EFFECT} ${GUARD}`,
  `UPDATE holdfast.effects e SET state = r.state, settled_at = r.settled_at, outcome = r.outcome
      WHERE ${same(`${REF} key`, 'e', 'r')} AND (e.state || '') IN ('started', 'unknown') AND ${FENCE}`,
)}
  IF batch ? 'keep_lease' THEN
    DELETE FROM holdfast.holders WHERE holder IN (
      SELECT h.holder FROM holdfast.holders h WHERE h.until <= instant FOR UPDATE SKIP LOCKED);
  END IF;
${add(
  'keep_lease',
  'holder until',
  `${insert('holders', 'holder until')} ON CONFLICT (holder) DO UPDATE SET until = excluded.until`,
)}
  IF batch ? 'end_lease' THEN
    DELETE FROM holdfast.holders h USING ${rows('end_lease', 'n holder')} WHERE n = ANY (go) AND h.holder = r.holder;
  END IF;
${add(
  'claim',
  'tenant what id holder',
  `${insert('claims', 'tenant what id holder')} ON CONFLICT (tenant, what, id) DO UPDATE SET holder = excluded.holder
      WHERE claims.holder = excluded.holder OR NOT EXISTS (
        SELECT 1 FROM holdfast.holders h WHERE h.holder = claims.holder AND h.until > instant)`,
  'HL002',
)}
  IF batch ? 'unclaim' THEN
    DELETE FROM holdfast.claims c USING ${rows('unclaim', 'n tenant what id holder')}
      WHERE n = ANY (go) AND ${same('tenant what id holder', 'c', 'r')};
  END IF;
  IF batch ? 'quarantine' THEN
    INSERT INTO holdfast.quarantines (${quoted(QUARANTINE)})
      SELECT ${quoted(QUARANTINE, 'r.')} FROM ${rows('quarantine', `n ${QUARANTINE}`)} WHERE n = ANY (go)
      ON CONFLICT DO NOTHING;
  END IF;
  IF batch ? 'audit' THEN
    INSERT INTO holdfast.audit (${quoted(REF)}, seq, entry, prev_hash, hash, commit_id)
      SELECT ${quoted(REF, 'r.')}, r.seq, r.entry, r.prev_hash, r.hash, r.commit_id
      FROM ${rows('audit', `n ${REF} seq entry prev_hash hash commit_id`)} WHERE n = ANY (go) ORDER BY n, seq;
  END IF;
${add('first_head', `${REF} seq hash`, insert('audit_heads', `${REF} seq hash`))}
${change(
  'next_head',
  `${REF} seq hash`,
  `UPDATE holdfast.audit_heads h SET seq = r.seq, hash = r.hash WHERE ${same(REF, 'h', 'r')}`,
)}
END $$;

-- Together if that goes well; else in halves, so that a command that cannot be carried out fails alone.
CREATE FUNCTION holdfast.attempt(go int[], batch jsonb, clock timestamptz)
RETURNS TABLE (n int, status text, detail text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  half int := cardinality(go) / 2;
BEGIN
  BEGIN
    PERFORM holdfast.apply(go, batch, clock);
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

-- What became of each command: done; already, by an earlier sending of it; stale, judged on a state that is no more; locked, by
-- another transaction, where it was not told to be patient; conflict, with a row that is none of the case's; broken.
-- Each look at what others may have changed is a statement of its own, after the locks: it has to see what the lock waited for.
CREATE FUNCTION holdfast.commit(given timestamptz, patient boolean, batch jsonb)
RETURNS TABLE (n int, status text, detail text) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
DECLARE
  clock timestamptz := coalesce(given, clock_timestamp());
  held_seq bigint[]; held_hash text[]; unmoved boolean[]; go int[]; one record;
BEGIN
  -- Each by its place in the batch, and NULL where it is not to be had.
  IF patient THEN
    SELECT array_agg(h.seq ORDER BY r.n), array_agg(h.hash ORDER BY r.n) INTO held_seq, held_hash
      FROM (SELECT * FROM ${rows('heads', `n ${REF}`)} ORDER BY tenant, root, case_id) r
      LEFT JOIN LATERAL (${lock('audit_heads', 'UPDATE')}) h ON true;
    SELECT array_agg(c.tenant IS NOT NULL ORDER BY r.n) INTO unmoved
      FROM (SELECT * FROM ${rows('heads', `n ${REF} moves`)} ORDER BY tenant, root, case_id) r
      LEFT JOIN LATERAL (${lock('cases', 'NO KEY UPDATE', 'AND r.moves')}) c ON true;
  ELSE
    SELECT array_agg(h.seq ORDER BY r.n), array_agg(h.hash ORDER BY r.n) INTO held_seq, held_hash
      FROM ${rows('heads', `n ${REF}`)}
      LEFT JOIN LATERAL (${lock('audit_heads', 'UPDATE', '', 'SKIP LOCKED')}) h ON true;
    SELECT array_agg(c.tenant IS NOT NULL ORDER BY r.n) INTO unmoved
      FROM ${rows('heads', `n ${REF} moves`)}
      LEFT JOIN LATERAL (${lock('cases', 'NO KEY UPDATE', 'AND r.moves', 'SKIP LOCKED')}) c ON true;
  END IF;
  FOR one IN
    SELECT r.*, held_seq[r.n + 1] AS found_seq, held_hash[r.n + 1] AS found_hash,
      held_seq[r.n + 1] IS NULL AND ${there(`audit_heads h WHERE ${same(REF, 'h', 'r')}`)} AS locked,
      r.accept_by < clock
        OR ${quarantined('r')}
        OR r.revision IS NOT NULL AND NOT ${there('kinds k WHERE k.tenant = r.tenant AND k.kind = r.kind AND k.revision = r.revision')}
        OR r.moves AND ${there(`effects e WHERE ${same(REF, 'e', 'r')}
          AND (e.state || '') = 'started' AND e.limit_at::timestamptz > clock`)} AS refused
    FROM ${rows('heads', `n ${REF} seq hash commit_id accept_by kind revision moves`)}
  LOOP
    n := one.n;
    detail := NULL;
    status := NULL;
    IF one.commit_id IS NULL THEN
      go := go || n;
    ELSIF one.locked THEN
      status := 'locked';
    ELSIF one.seq <> coalesce(one.found_seq, 0) OR one.hash <> coalesce(one.found_hash, '') THEN
      status := 'stale';
      IF EXISTS (SELECT 1 FROM holdfast.audit a WHERE ${same(REF, 'a', 'one')}
        AND a.seq = one.seq + 1 AND a.commit_id = one.commit_id)
      THEN
        -- Written, so that this commit too waits for whatever makes a commit durable before it vouches for the other.
        UPDATE holdfast.audit_heads h SET seq = h.seq WHERE ${same(REF, 'h', 'one')};
        status := 'already';
      END IF;
    ELSIF one.refused THEN
      status := 'stale';
    ELSIF one.moves AND NOT patient AND NOT unmoved[n + 1] THEN
      status := 'locked';
    ELSE
      go := go || n;
    END IF;
    IF status IS NOT NULL THEN RETURN NEXT; END IF;
  END LOOP;
  IF go IS NOT NULL THEN
    RETURN QUERY SELECT * FROM holdfast.attempt(go, batch, clock);
  END IF;
END $$;

-- What the rules may read of each case that is asked for, all in one look.
CREATE FUNCTION holdfast.slices(batch jsonb)
RETURNS TABLE (n int, clock text, seq bigint, hash text, quarantined boolean, offer_quarantined boolean,
  decision_quarantined boolean, other_quarantined boolean, until text, definition text, revision bigint,
  "case" json, open_offer json, open_work json, effects json, offer json, decision json, last int, item json, task json)
LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY SELECT r.n, to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    h.seq, h.hash,
    ${quarantined('r')},
    ${quarantined('o')},
    ${quarantined('d')},
    ${there('quarantines q WHERE q.tenant = r.tenant AND q.root = r.other_root AND q.case_id = r.other_case_id')},
    (SELECT h.until FROM holdfast.holders h WHERE h.holder = r.holder),
    k.definition, k.revision,
    CASE WHEN c.tenant IS NOT NULL THEN row_to_json(c) END,
    (SELECT row_to_json(p) FROM holdfast.offers p WHERE ${same(REF, 'p', 'r')}
      AND p.state IN ('intended', 'offered', 'in_doubt')),
    (SELECT json_agg(w ORDER BY w.ord) FROM holdfast.work_items w WHERE ${same(REF, 'w', 'r')} AND w.state = 'open'),
    (SELECT json_agg(e ORDER BY e.ord) FROM holdfast.effects e WHERE ${same(REF, 'e', 'r')}),
    CASE WHEN o.tenant IS NOT NULL THEN row_to_json(o) END,
    CASE WHEN d.tenant IS NOT NULL THEN row_to_json(d) END,
    greatest(
      (SELECT max(p.attempt) FROM holdfast.offers p WHERE ${same('tenant root sender handoff_id', 'p', 'r')}),
      (SELECT max(p.attempt) FROM holdfast.decisions p WHERE ${same('tenant root sender handoff_id', 'p', 'r')})),
    (SELECT row_to_json(w) FROM holdfast.work_items w WHERE w.tenant = r.tenant AND w.id = r.work_id),
    (SELECT row_to_json(t) FROM holdfast.tasks t WHERE t.tenant = r.tenant AND t.id = r.task_id)
  FROM ${rows('asked', `n ${REF} sender handoff_id attempt kind work_id task_id other_root other_case_id holder`)}
  LEFT JOIN holdfast.cases c ON ${same(REF, 'c', 'r')}
  LEFT JOIN holdfast.audit_heads h ON ${same(REF, 'h', 'r')}
  LEFT JOIN holdfast.offers o ON ${same(KEY, 'o', 'r')}
  LEFT JOIN holdfast.decisions d ON ${same(KEY, 'd', 'r')}
  LEFT JOIN holdfast.kinds k ON k.tenant = r.tenant AND k.kind = coalesce(c.kind, r.kind);
END $$;
`;
