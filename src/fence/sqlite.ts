import type { SqliteDatabase } from './connection.js';
import { checkSpec, type FenceSource, type FenceSpec, quoteName, quoteText } from './spec.js';
import { inTheWay, readSqliteTable, type SqliteTable, type UniqueKey } from './sqlite-table.js';

const TOKEN_COLUMN = 'holdfast_token';
/** What a token begins with that stands in a row until its DELETE. No case id holds a space. */
const MARK = 'delete ';

export interface SqliteFence {
  readonly spec: FenceSpec & { readonly tokenColumn: string };
  /** Absent where the column is there already. */
  readonly addColumn: string | null;
  /** Trigger by name, as `sqlite_schema` keeps it. */
  readonly triggers: ReadonlyMap<string, string>;
  /** All of it as one script, for one transaction. */
  readonly sql: string;
}

/** SQLite has no limit of its own; this keeps names of triggers readable. */
const NAME_MAX_BYTES = 200;

/**
 * The SQL that fences a table of the ledger's SQLite file as the table is now; running it again changes nothing. SQLite cannot add a
 * column only where it is missing, nor ask for unique keys, so that the file has to be looked at.
 * @throws usage
 */
export function sqliteFence(db: SqliteDatabase, input: FenceSpec): SqliteFence {
  const spec = {
    ...checkSpec({ tokenColumn: TOKEN_COLUMN, ...input }, NAME_MAX_BYTES),
  } as SqliteFence['spec'];
  const table = readSqliteTable(db, spec);
  const [relation, token] = [quoteName(spec.table), quoteName(spec.tokenColumn)];
  const hasColumn = table.columns.includes(spec.tokenColumn);
  const addColumn = hasColumn ? null : `ALTER TABLE ${relation} ADD COLUMN ${token} TEXT;`;
  const triggers = triggersOf(spec, table);
  const sql = [
    ...(addColumn === null ? [] : [addColumn]),
    ...[...triggers.keys()].map((name) => `DROP TRIGGER IF EXISTS ${quoteName(name)};`),
    // A token that is left in a row from a time without triggers must not count as that of a statement to come.
    `UPDATE ${relation} SET ${token} = NULL WHERE ${token} IS NOT NULL;`,
    ...[...triggers.values()].map((trigger) => `${trigger};`),
  ].join('\n');
  return { spec, addColumn, triggers, sql };
}

function triggersOf(spec: SqliteFence['spec'], table: SqliteTable): Map<string, string> {
  const [relation, token] = [quoteName(spec.table), quoteName(spec.tokenColumn)];
  const name = (what: string) => `holdfast_fence_${spec.table}_${what}`;
  const trigger = (what: string, event: string, body: string): [string, string] => [
    name(what),
    `CREATE TRIGGER ${quoteName(name(what))} ${event} ON ${relation}\n${body}\nEND`,
  ];
  const isMark = (row: string) => `substr(${row}.${token}, 1, ${MARK.length}) = ${quoteText(MARK)}`;
  const unmarked = (row: string) => `substr(${row}.${token}, ${MARK.length + 1})`;
  const others = table.unique.map((key) => othersInTheWay(spec, table, key));
  const moved = placeOf(spec).map((column) => `NEW.${column} IS NOT OLD.${column}`);

  // What an UPDATE presents. A mark that stands in the row was another statement's; a token that is blanked was checked before.
  const presented = `CASE WHEN NEW.${token} IS NULL THEN OLD.${token}
    WHEN ${isMark('NEW')} AND NEW.${token} IS NOT OLD.${token} THEN ${unmarked('NEW')} ELSE NEW.${token} END`;
  const marked = `CASE WHEN ${isMark('OLD')} THEN ${unmarked('OLD')} END`;
  const blank = `WHEN NEW.${token} IS NOT NULL AND NOT ${isMark('NEW')}
BEGIN
  UPDATE ${relation} SET ${token} = NULL
    WHERE ${table.identity.map((key) => `${quoteName(key)} = NEW.${quoteName(key)}`).join(' AND ')};`;

  return new Map([
    trigger(
      'insert',
      'BEFORE INSERT',
      guard(spec, 'INSERT', 'NEW', `NEW.${token}`, [
        ...others.map((other) => [other, 'the row has a key of a row of another case'] as const),
      ]),
    ),
    trigger(
      'update',
      'BEFORE UPDATE',
      guard(spec, 'UPDATE', 'NEW', presented, [
        [moved.join(' OR '), 'a row keeps its case: delete it there, and insert it here'] as const,
        ...others.map((other, index) => {
          const changed = (table.unique[index] as UniqueKey).columns.map(
            ({ name: column }) => `NEW.${quoteName(column)} IS NOT OLD.${quoteName(column)}`,
          );
          const isNew = table.unique[index]?.where === null ? `(${changed.join(' OR ')}) AND ` : '';
          return [`${isNew}${other}`, 'the row has a key of a row of another case'] as const;
        }),
      ]),
    ),
    trigger('delete', 'BEFORE DELETE', guard(spec, 'DELETE', 'OLD', marked, [])),
    trigger('inserted', 'AFTER INSERT', blank),
    trigger('updated', 'AFTER UPDATE', blank),
  ]);
}

/** The columns that say which case a row belongs to. */
function placeOf({ caseColumn, tenant, root }: FenceSpec): string[] {
  const named = [tenant, root, { column: caseColumn }];
  return named.flatMap((source) => ('column' in source ? [quoteName(source.column)] : []));
}

/** REPLACE removes the rows in its way and fires no trigger for them; it may do so to rows of the writer's case only. */
function othersInTheWay(spec: FenceSpec, table: SqliteTable, key: UniqueKey): string {
  const differs = placeOf(spec).map((column) => `held.${column} IS NOT NEW.${column}`);
  return `EXISTS (SELECT 1 ${inTheWay(key, spec.table, table.columns)} AND (${differs.join(' OR ')}))`;
}

/** One look at the ledger lets a right statement pass; only a wrong one is asked what is wrong with it. */
function guard(
  spec: FenceSpec,
  event: string,
  row: string,
  presented: string,
  forbidden: readonly (readonly [condition: string, problem: string])[],
): string {
  const text = (source: FenceSource) =>
    'value' in source ? quoteText(source.value) : `CAST(${row}.${quoteName(source.column)} AS TEXT)`;
  const caseId = text({ column: spec.caseColumn });
  const place = (name: string) =>
    `${name}.tenant = ${text(spec.tenant)} AND ${name}.root = ${text(spec.root)} AND ${name}.case_id = ${caseId}`;
  const held = `FROM cases AS c WHERE ${place('c')}`;
  const quarantined = `EXISTS (SELECT 1 FROM quarantines AS q WHERE ${place('q')})`;
  // From the intent until the offer closes, a receiver with a ledger of its own may own the case, and this ledger would not know.
  const mode = `SELECT json_extract(k.definition, '$.mode') FROM kinds AS k WHERE k.tenant = o.tenant AND k.kind = o.kind`;
  const frozen = `EXISTS (SELECT 1 FROM offers AS o WHERE ${place('o')} AND o.state IN ('intended', 'offered', 'in_doubt') AND (${mode}) = 'separate')`;
  const isOwner = `c.case_id || ':' || c.epoch || ':' || c.owner = (${presented})`;
  const passes = `EXISTS (SELECT 1 ${held} AND c.status = 'open' AND ${isOwner}) AND NOT ${quarantined} AND NOT ${frozen}`;
  const epoch = `CAST(substr((${presented}), length(${caseId}) + 2) AS INTEGER)`;
  const isForCase = `substr((${presented}), 1, length(${caseId}) + 1) = ${caseId} || ':'`;
  const refuse = (state: string, problem: string, where: string) =>
    `  SELECT RAISE(ABORT, ${quoteText(`holdfast: ${state} ${event} on ${spec.table}: ${problem}`)}) WHERE ${where};`;
  const unpresented =
    event === 'DELETE'
      ? `the row was not marked: UPDATE its ${spec.tokenColumn} to '${MARK}' and the token first`
      : `the statement sets no token of the case in ${spec.tokenColumn}`;
  return `WHEN ${[`NOT (${passes})`, ...forbidden.map(([condition]) => condition)].join('\n  OR ')}
BEGIN
${[
  refuse('HF001', unpresented, `(${isForCase}) IS NOT TRUE`),
  refuse('HF004', 'the case is not in this ledger', `NOT EXISTS (SELECT 1 ${held})`),
  refuse('HF005', 'the case is quarantined', quarantined),
  refuse('HF007', 'the case has not come to this epoch', `EXISTS (SELECT 1 ${held} AND ${epoch} > c.epoch)`),
  refuse('HF002', 'the case has a newer epoch', `EXISTS (SELECT 1 ${held} AND ${epoch} < c.epoch)`),
  refuse('HF003', 'the case has another owner', `NOT EXISTS (SELECT 1 ${held} AND ${isOwner})`),
  refuse('HF006', 'the case is closed', `EXISTS (SELECT 1 ${held} AND c.status <> 'open')`),
  refuse('HF009', 'the case is offered to a receiver with a ledger of its own', frozen),
  ...forbidden.map(([condition, problem]) => refuse('HF008', problem, condition)),
].join('\n')}`;
}
