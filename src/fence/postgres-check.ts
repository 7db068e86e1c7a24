import { HoldfastError } from '../core/index.js';
import type { PostgresClient } from './connection.js';
import { FENCED_EVENTS, relationOf, triggerArguments, triggerName } from './postgres.js';
import { MARK, MARK_BODY, PRESENT, PRESENT_BODY, REFUSE, REFUSE_BODY } from './postgres-functions.js';
import { type FenceProblem, type FenceReport, reportOf } from './report.js';
import { checkSpec, columnsOf, type FenceSpec, noLedger } from './spec.js';

interface FoundTrigger {
  readonly event: string;
  readonly enabled: string;
  readonly arguments: string[];
  /** Taken over from the partitioned table; only its being enabled is the partition's own. */
  readonly cloned: boolean;
  readonly intact: boolean;
}

interface FoundRelation {
  readonly relation: string;
  readonly triggers: FoundTrigger[];
  readonly unfenced: string[];
}

/** `holdfast.fence_mark` is only called where it is as it has to be: without the ledger's functions the table can still be looked at. */
const TRIGGERS = (mark: string) => `
SELECT part.oid::regclass::text AS relation,
  (SELECT coalesce(json_agg(json_build_object(
    'event', substr(t.tgname, 16), 'enabled', t.tgenabled, 'cloned', t.tgparentid <> 0,
    'arguments', array_remove(string_to_array(encode(t.tgargs, 'escape'), '\\000'), ''),
    'intact', coalesce(t.tgfoid = to_regprocedure('${REFUSE}') AND obj_description(t.oid, 'pg_trigger') = ${mark}, false))), '[]')
   FROM pg_trigger t WHERE t.tgrelid = part.oid AND t.tgname LIKE 'holdfast\\_fence\\_%') AS triggers,
  (SELECT coalesce(json_agg(i.inhrelid::regclass::text), '[]') FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
   WHERE i.inhparent = part.oid AND NOT c.relispartition) AS unfenced
FROM (SELECT $1::regclass AS oid UNION SELECT relid FROM pg_partition_tree($1::regclass)) part
ORDER BY 1`;

/**
 * Says whether the fence of a table is there, of this version, on the right columns and in force, and who could get past it.
 * @throws usage where there is no such table, column or role
 */
export async function checkPostgresFence(client: PostgresClient, input: FenceSpec): Promise<FenceReport> {
  const spec = checkSpec(input);
  await assertTable(client, spec);
  const problems = await checkFunctions(client);
  const mark = problems.some(({ about }) => about === MARK) ? 'NULL' : MARK.replace('(oid)', '(t.oid)');
  const { rows } = await client.query(TRIGGERS(mark), [relationOf(spec)]);
  for (const found of rows as FoundRelation[]) problems.push(...checkRelation(found, triggerArguments(spec)));
  const { roleProblems, notes } = await checkRoles(client, spec);
  return reportOf(relationOf(spec), [...problems, ...roleProblems], notes);
}

/**
 * Sees that a fence can be put on the table before anything is changed.
 * @throws usage
 */
export async function assertTable(client: PostgresClient, spec: FenceSpec): Promise<void> {
  const relation = relationOf(spec);
  const { rows } = await client.query(
    `SELECT c.relkind, ARRAY(SELECT a.attname::text FROM pg_attribute a
       WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
       $2::text IS NULL OR EXISTS (SELECT FROM pg_roles WHERE rolname = $2) AS role_exists,
       to_regprocedure($3) IS NOT NULL AS has_ledger
     FROM pg_class c WHERE c.oid = to_regclass($1)`,
    [relation, spec.role ?? null, PRESENT],
  );
  const [found] = rows;
  if (found === undefined) {
    throw new HoldfastError('usage', `There is no table ${relation}; names are taken exactly as written.`);
  }
  if (found.relkind !== 'r' && found.relkind !== 'p') {
    throw new HoldfastError('usage', `${relation} is no table: fence the tables behind it.`);
  }
  for (const column of columnsOf(spec)) {
    if (!found.columns.includes(column)) {
      throw new HoldfastError(
        'usage',
        `The table ${relation} has no column ${column}; names are taken exactly as written.`,
      );
    }
  }
  if (!found.has_ledger) throw noLedger();
  if (!found.role_exists) throw new HoldfastError('usage', `There is no role ${spec.role}.`);
}

async function checkFunctions(client: PostgresClient): Promise<FenceProblem[]> {
  const bodies: Readonly<Record<string, string>> = {
    [PRESENT]: PRESENT_BODY,
    [REFUSE]: REFUSE_BODY,
    [MARK]: MARK_BODY,
  };
  const { rows } = await client.query(
    `SELECT wanted.name, p.prosrc, p.prosecdef, p.proconfig FROM unnest($1::text[]) AS wanted (name)
     LEFT JOIN pg_proc p ON p.oid = to_regprocedure(wanted.name)`,
    [Object.keys(bodies)],
  );
  return rows.flatMap(({ name, prosrc, prosecdef, proconfig }): FenceProblem[] => {
    const about = { relation: 'holdfast', about: name };
    if (prosrc === null) {
      return [
        { ...about, state: 'missing', problem: 'is not there: the database holds no ledger of this version' },
      ];
    }
    const pinned = proconfig?.includes('search_path=pg_catalog, pg_temp') ?? false;
    if (prosrc === bodies[name] && prosecdef === (name === PRESENT) && pinned) return [];
    return [{ ...about, state: 'altered', problem: 'is not the function of this version' }];
  });
}

function checkRelation(
  { relation, triggers, unfenced }: FoundRelation,
  wanted: readonly string[],
): FenceProblem[] {
  const problems = FENCED_EVENTS.flatMap((event): FenceProblem[] => {
    const about = { relation, about: event.toUpperCase() };
    const trigger = triggers.find((found) => found.event === event);
    if (!trigger) return [{ ...about, state: 'missing', problem: `has no trigger ${triggerName(event)}` }];
    if (trigger.enabled === 'D') return [{ ...about, state: 'disabled', problem: 'its trigger is disabled' }];
    if (trigger.enabled !== 'A') {
      const problem = 'session_replication_role switches its trigger off: it is not ENABLE ALWAYS';
      return [{ ...about, state: 'bypassed', problem }];
    }
    if (trigger.arguments.join('\n') !== wanted.join('\n')) {
      const problem = `is fenced on ${trigger.arguments.join(' ')}, not on ${wanted.join(' ')}`;
      return [{ ...about, state: 'altered', problem }];
    }
    if (trigger.cloned || trigger.intact) return [];
    return [{ ...about, state: 'altered', problem: 'its trigger was changed, or is of another version' }];
  });
  const children = unfenced.map((child): FenceProblem => {
    const problem = `${child} inherits from ${relation}, and its rows have no fence`;
    return { relation: child, about: 'INHERITS', state: 'bypassed', problem };
  });
  return [...problems, ...children];
}

async function checkRoles(client: PostgresClient, spec: FenceSpec) {
  const { rows } = await client.query(
    `SELECT pg_get_userbyid(c.relowner) AS owner,
       CASE WHEN $2::text IS NOT NULL THEN pg_has_role($2, c.relowner, 'USAGE') END AS is_owner,
       (SELECT rolsuper FROM pg_roles WHERE rolname = $2) AS is_super,
       CASE WHEN $2::text IS NOT NULL THEN has_schema_privilege($2, to_regnamespace('holdfast')::oid, 'USAGE')
         AND has_function_privilege($2, to_regprocedure($3)::oid, 'EXECUTE') END AS may_present
     FROM pg_class c WHERE c.oid = to_regclass($1)`,
    [relationOf(spec), spec.role ?? null, PRESENT],
  );
  const [{ owner, is_owner, is_super, may_present }] = rows as [
    { owner: string; is_owner: boolean | null; is_super: boolean | null; may_present: boolean | null },
  ];
  const about = { relation: relationOf(spec), about: `role ${spec.role}` };
  const roleProblems: FenceProblem[] = [];
  if (is_super || is_owner) {
    const problem = `${spec.role} ${is_super ? 'is a superuser' : "has the rights of the table's owner"}: it can switch the fence off`;
    roleProblems.push({ ...about, state: 'bypassed', problem });
  }
  if (may_present === false) {
    const problem = `${spec.role} may not execute ${PRESENT}, and can write nothing`;
    roleProblems.push({ ...about, state: 'missing', problem });
  }
  const notes = [`${owner}, who owns the table, and superusers can switch the fence off or drop it.`];
  return { roleProblems, notes };
}
