/**
 * What fences need in a PostgreSQL ledger, as the ledger's migration makes it. Once released it never changes: a change is a next
 * version, in a next migration.
 *
 * What was presented is kept in a setting that is local to the transaction: a rollback, also one to a savepoint, takes it back
 * together with the lock on the case row, and the next user of a pooled connection finds nothing. It names the transaction, so that
 * a value that got there in another way stands for nothing. `FOR SHARE` keeps the owner and epoch as they are until the user's
 * transaction ends: an acceptance waits, and a presentation that waited for one sees what it has committed.
 */
const FENCE_VERSION = 1;

/**
 * The setting that keeps the presentation of a case. There are several, so that a transaction over thousands of cases does not read
 * through all of them for each row; and not one for each case, since a session never forgets the name of a setting.
 */
const settingOf = (caseId: string) =>
  `'holdfast.presented_' || (pg_catalog.hashtext(${caseId} COLLATE "C") & 63)`;

/** What the setting holds for a case: no part of it has a line or a tab in it, in what a ledger holds. */
const entryOf = (...parts: string[]) =>
  `E'\\n' || pg_catalog.pg_current_xact_id()::text || E'\\t' || ${parts.join(" || E'\\t' || ")} || E'\\n'`;

/** SQL that is true where the case was presented in this transaction, and false or null elsewhere. */
export const isPresented = (tenant: string, root: string, caseId: string) =>
  `pg_catalog.strpos(pg_catalog.current_setting(${settingOf(caseId)}, true) COLLATE "C", ${entryOf(tenant, root, caseId)}) > 0`;

const FIRST = { declare: '', column: '', look: '', verdict: '', hint: '' };

const presentBody = ({ declare, column, look, verdict, hint } = FIRST) => `
#variable_conflict use_variable
DECLARE
  held record;
  setting text := ${settingOf('case_id')};
  presented text COLLATE "C" := coalesce(current_setting(setting, true), '');
  entry text COLLATE "C";
  state text;
  problem text;${declare}
BEGIN
  SELECT c.epoch, c.owner, c.status${column} INTO held FROM holdfast.cases c
    WHERE c.tenant = present.tenant AND c.root = present.root AND c.case_id = present.case_id
    FOR SHARE;${look}
  IF NOT FOUND THEN
    state := 'HF004'; problem := 'is not in this ledger';
  ELSIF EXISTS (SELECT FROM holdfast.quarantines q
      WHERE q.tenant = present.tenant AND q.root = present.root AND q.case_id = present.case_id) THEN
    state := 'HF005'; problem := 'is quarantined';
  ELSIF present.epoch > held.epoch THEN
    state := 'HF007'; problem := 'has not come to this epoch';
  ELSIF present.epoch IS DISTINCT FROM held.epoch THEN
    state := 'HF002'; problem := 'has a newer epoch';
  ELSIF present.writer IS DISTINCT FROM held.owner THEN
    state := 'HF003'; problem := 'has another owner';
  ELSIF held.status <> 'open' THEN
    state := 'HF006'; problem := 'is closed';${verdict}
  ELSE
    entry := ${entryOf('tenant', 'root', 'case_id')};
    IF strpos(presented, entry) = 0 THEN
      PERFORM set_config(setting, presented || entry, true);
    END IF;
    RETURN;
  END IF;
  RAISE EXCEPTION USING
    ERRCODE = state,
    MESSAGE = format('holdfast: case %s %s (presented epoch %s, current epoch %s)',
      case_id, problem, coalesce(epoch::text, 'none'), coalesce(held.epoch::text, 'none')),
    DETAIL = format('tenant %s, root %s, writer %s', tenant, root, writer),
    HINT = CASE state
      WHEN 'HF002' THEN 'Another agent owns the case by now: stop working on it.'
      WHEN 'HF003' THEN 'Only the owner of the case writes.'
      WHEN 'HF004' THEN 'Open the case first; tenant, root and case id must be those of the ledger.'
      WHEN 'HF005' THEN 'An operator has to settle it.'
      WHEN 'HF006' THEN 'A closed case takes no more writes.'${hint}
      ELSE 'Present the epoch under which the case is owned.' END;
END
`;

/**
 * As it is since `FENCE_FREEZE_SQL`. Offers are asked of separate kinds only, and in a statement of their own, after the lock: it sees
 * an intent that the lock has waited for.
 */
export const PRESENT_BODY = presentBody({
  declare: `
  offered boolean;`,
  column:
    ', (SELECT k.separate FROM holdfast.kinds k WHERE k.tenant = c.tenant AND k.kind = c.kind) AS separate',
  look: `
  IF held.separate THEN
    offered := EXISTS (SELECT FROM holdfast.offers o
      WHERE o.tenant = present.tenant AND o.root = present.root AND o.case_id = present.case_id
        AND o.state IN ('intended', 'offered', 'in_doubt'));
  END IF;`,
  verdict: `
  ELSIF offered THEN
    state := 'HF009'; problem := 'is offered to a receiver with a ledger of its own';`,
  hint: `
      WHEN 'HF009' THEN 'Its receiver may own it by now: write again once the offer has closed.'`,
});

export const REFUSE_BODY = `
DECLARE
  relation text := format('%I.%I', TG_TABLE_SCHEMA, TG_TABLE_NAME);
  touched jsonb[];
  found jsonb;
  part text;
  parts text[];
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    RAISE EXCEPTION USING ERRCODE = 'HF008', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
      MESSAGE = format('holdfast: TRUNCATE of %s is refused', relation),
      DETAIL = 'Its rows belong to cases, and TRUNCATE would remove those of every case.',
      HINT = 'DELETE the rows of a case after presenting it.';
  END IF;
  touched := CASE TG_OP WHEN 'INSERT' THEN ARRAY[to_jsonb(NEW)] WHEN 'DELETE' THEN ARRAY[to_jsonb(OLD)]
    ELSE ARRAY[to_jsonb(OLD), to_jsonb(NEW)] END;
  FOREACH found IN ARRAY touched LOOP
    parts := '{}';
    FOREACH part IN ARRAY TG_ARGV LOOP
      parts := parts || CASE left(part, 1) WHEN '=' THEN substr(part, 2) ELSE found ->> substr(part, 2) END;
    END LOOP;
    EXIT WHEN (${isPresented('parts[1]', 'parts[2]', 'parts[3]')}) IS NOT TRUE;
  END LOOP;
  RAISE EXCEPTION USING ERRCODE = 'HF001', SCHEMA = TG_TABLE_SCHEMA, TABLE = TG_TABLE_NAME,
    MESSAGE = format('holdfast: %s on %s: %s was not presented in this transaction', TG_OP, relation,
      coalesce('case ' || parts[3], 'a row without a case')),
    DETAIL = format('tenant %s, root %s', coalesce(parts[1], 'none'), coalesce(parts[2], 'none')),
    HINT = 'Call holdfast.present(tenant, root, case_id, epoch, writer) first, in the same transaction.';
END
`;

export const MARK_BODY = `SELECT 'holdfast fence ${FENCE_VERSION} ' ||
  encode(sha256(convert_to(pg_get_triggerdef(fence), 'UTF8')), 'hex')`;

const PINNED = 'SET search_path = pg_catalog, pg_temp';
export const PRESENT = 'holdfast.present(text, text, text, bigint, text)';
export const REFUSE = 'holdfast.refuse_unpresented()';
export const MARK = 'holdfast.fence_mark(oid)';

const PRESENT_HEAD = `FUNCTION holdfast.present(tenant text, root text, case_id text, epoch bigint, writer text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER ${PINNED}`;

export const FENCE_FUNCTIONS_SQL = `
CREATE ${PRESENT_HEAD} AS $holdfast$${presentBody()}$holdfast$;
REVOKE ALL ON FUNCTION ${PRESENT} FROM PUBLIC;

CREATE FUNCTION ${REFUSE} RETURNS trigger
LANGUAGE plpgsql ${PINNED} AS $holdfast$${REFUSE_BODY}$holdfast$;

CREATE FUNCTION holdfast.fence_mark(fence oid) RETURNS text
LANGUAGE sql STABLE ${PINNED} AS $holdfast$${MARK_BODY}$holdfast$;
`;

/**
 * `present` learns of offers to a receiver with a ledger of its own: from the intent until the offer closes the receiver may own the
 * case, and this ledger would not know. Who may call it, and the fences that are there, stay as they are. A transaction with one
 * snapshot for all its statements sees no intent that came after: the lock refuses it, since an intent writes the row of its case.
 */
export const FENCE_FREEZE_SQL = `
CREATE OR REPLACE ${PRESENT_HEAD} AS $holdfast$${PRESENT_BODY}$holdfast$;
`;
