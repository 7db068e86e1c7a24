import { isPresented, MARK, PRESENT } from './postgres-functions.js';
import { checkSpec, type FenceSource, type FenceSpec, quoteName, quoteText } from './spec.js';

/** The events a fence refuses, each with a trigger of its own: a condition on OLD or NEW can name only what its event has. */
export const FENCED_EVENTS = ['insert', 'update', 'delete', 'truncate'] as const;

export const triggerName = (event: string): string => `holdfast_fence_${event}`;

export function relationOf({ schema = 'public', table }: FenceSpec): string {
  return `${quoteName(schema)}.${quoteName(table)}`;
}

/** The trigger's arguments: tenant, root and case, each `=value` or `.column`. */
export function triggerArguments({ tenant, root, caseColumn }: FenceSpec): string[] {
  const argument = (source: FenceSource) => ('value' in source ? `=${source.value}` : `.${source.column}`);
  return [argument(tenant), argument(root), `.${caseColumn}`];
}

/**
 * The SQL that fences a table of PostgreSQL 15 or later; running it again changes nothing. To be run in one transaction by the
 * table's owner, again after a partition was added.
 * @throws usage
 */
export function postgresFenceSql(input: FenceSpec): string {
  const spec = checkSpec(input);
  const relation = relationOf(spec);
  const refuse = `EXECUTE FUNCTION holdfast.refuse_unpresented(${triggerArguments(spec).map(quoteText).join(', ')})`;
  const rows = { insert: ['NEW'], update: ['OLD', 'NEW'], delete: ['OLD'] };
  const triggers = Object.entries(rows).map(
    ([
      event,
      touched,
    ]) => `CREATE OR REPLACE TRIGGER ${triggerName(event)} AFTER ${event.toUpperCase()} ON ${relation}
  FOR EACH ROW WHEN (${touched.map((row) => unless(row, spec)).join('\n    OR ')})
  ${refuse};`,
  );
  const grants =
    spec.role === undefined
      ? []
      : [
          `GRANT USAGE ON SCHEMA holdfast TO ${quoteName(spec.role)};
GRANT EXECUTE ON FUNCTION ${PRESENT} TO ${quoteName(spec.role)};`,
        ];
  return [...triggers, everyPartition(relation, refuse), ...grants].join('\n');
}

/**
 * After the statement has its row: a trigger before it may still change the case. A condition costs no call where it is false,
 * so that only a refusal runs a function.
 */
function unless(row: string, { tenant, root, caseColumn }: FenceSpec): string {
  const part = (source: FenceSource) =>
    'value' in source ? quoteText(source.value) : `${row}.${quoteName(source.column)}::text`;
  return `(${isPresented(part(tenant), part(root), part({ column: caseColumn }))}) IS NOT TRUE`;
}

/**
 * Partitions take over row triggers, but not those of TRUNCATE. ALWAYS: `session_replication_role` switches others off. The mark
 * says of which version a trigger is, and lets the check see that it was changed since.
 */
function everyPartition(relation: string, refuse: string): string {
  return `DO $holdfast$
DECLARE
  part regclass;
  fence pg_catalog.pg_trigger;
BEGIN
  FOR part IN SELECT ${quoteText(relation)}::regclass UNION
      SELECT relid FROM pg_catalog.pg_partition_tree(${quoteText(relation)}) LOOP
    EXECUTE format('CREATE OR REPLACE TRIGGER ${triggerName('truncate')} BEFORE TRUNCATE ON %s FOR EACH STATEMENT %s',
      part, ${quoteText(refuse)});
    FOR fence IN SELECT * FROM pg_catalog.pg_trigger
        WHERE tgrelid = part AND tgname IN (${FENCED_EVENTS.map((event) => `'${triggerName(event)}'`).join(', ')}) LOOP
      EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', part, fence.tgname);
      EXECUTE format('COMMENT ON TRIGGER %I ON %s IS %L', fence.tgname, part, ${MARK.replace('(oid)', '(fence.oid)')});
    END LOOP;
  END LOOP;
END $holdfast$;`;
}
