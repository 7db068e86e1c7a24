import { HoldfastError, NAME_PATTERN, normalizeAgentUrl } from '../core/index.js';

/** Where a fenced row says its tenant or root: in a column, or the same for the whole table. */
export type FenceSource = { readonly column: string } | { readonly value: string };

/** A user's table, and how its rows say to which case they belong. Names are taken exactly as written. */
export interface FenceSpec {
  readonly table: string;
  /** PostgreSQL only. Default: `public`. */
  readonly schema?: string;
  readonly caseColumn: string;
  readonly tenant: FenceSource;
  readonly root: FenceSource;
  /** SQLite only: the column that every statement sets. Default: `holdfast_token`. */
  readonly tokenColumn?: string;
  /** PostgreSQL only: a role that writes to the table, and need not be able to read the ledger. */
  readonly role?: string;
}

/** NAMEDATALEN - 1: PostgreSQL cuts longer names without an error, and would fence another table. */
const POSTGRES_NAME_MAX_BYTES = 63;

/**
 * Judges names before any of them becomes SQL.
 * @throws usage
 */
export function checkSpec(spec: FenceSpec, maxBytes = POSTGRES_NAME_MAX_BYTES): FenceSpec {
  checkName('table', spec.table, maxBytes);
  if (spec.table.includes('.')) throw new HoldfastError('usage', 'The table is named without its schema.');
  if (spec.schema !== undefined) checkName('schema', spec.schema, maxBytes);
  if (spec.role !== undefined) checkName('role', spec.role, maxBytes);
  if (spec.tokenColumn !== undefined) checkName('token column', spec.tokenColumn, maxBytes);
  checkName('case column', spec.caseColumn, maxBytes);
  for (const source of [spec.tenant, spec.root]) {
    if ('column' in source) checkName('column', source.column, maxBytes);
  }
  if (spec.schema === 'holdfast') throw ledgersOwn();
  const columns = columnsOf(spec);
  if (new Set(columns).size < columns.length) {
    throw new HoldfastError('usage', 'Case, tenant, root and token are in columns of their own.');
  }
  return { ...spec, tenant: checkTenant(spec.tenant), root: checkRoot(spec.root) };
}

/** The columns of the fenced table that the fence reads. */
export function columnsOf({ caseColumn, tenant, root, tokenColumn }: FenceSpec): string[] {
  const named = [tenant, root].flatMap((source) => ('column' in source ? [source.column] : []));
  return [caseColumn, ...named, ...(tokenColumn === undefined ? [] : [tokenColumn])];
}

export function noLedger(): HoldfastError {
  const message =
    'The database holds no ledger of this version: `holdfast db migrate` makes it, or brings it up.';
  return new HoldfastError('usage', message);
}

export function ledgersOwn(): HoldfastError {
  return new HoldfastError('usage', "The ledger's own tables take no fence.");
}

export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Nothing that reaches here holds a backslash or a control character. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function checkName(what: string, name: string, maxBytes: number): void {
  // A dollar quote around the SQL would end at its own delimiter.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  if (name.trim() === '' || /[\u0000-\u001f\u007f\\]|\$holdfast\$/.test(name)) {
    throw new HoldfastError('usage', `The ${what} is no name: ${JSON.stringify(name.slice(0, 80))}.`);
  }
  if (Buffer.byteLength(name) > maxBytes) {
    throw new HoldfastError('usage', `The name of the ${what} is longer than ${maxBytes} bytes.`);
  }
}

function checkTenant(source: FenceSource): FenceSource {
  if ('value' in source && !NAME_PATTERN.test(source.value)) {
    throw new HoldfastError('usage', 'The tenant is no name of a tenant.');
  }
  return source;
}

function checkRoot(source: FenceSource): FenceSource {
  return 'value' in source ? { value: normalizeAgentUrl(source.value) } : source;
}
