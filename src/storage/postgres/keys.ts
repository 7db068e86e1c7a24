import type { CaseRef } from '../../core/index.js';
import type { Row, Statement } from './connection.js';

/** Asks the database one question. */
export type Ask = <R extends object = Row>(statement: Statement, values?: readonly unknown[]) => Promise<R[]>;

/** Condition on the first parameters, which are those of `caseOf`. */
export const THIS_CASE = 'tenant = $1 AND root = $2 AND case_id = $3';

export const caseOf = ({ tenant, root, caseId }: CaseRef) => [tenant, root, caseId];

/** Spelled as in the partial indexes, so that PostgreSQL uses them. */
export const IS_OPEN = "state IN ('intended', 'offered', 'in_doubt')";

/** Open, or accepted and the receipt not kept. */
export const IS_UNFINISHED = "receipt IS NULL AND o.state IN ('intended', 'offered', 'in_doubt', 'accepted')";

/** Rows of a tenant with the columns that are given, as a statement of its own for each set of columns. */
export function listOf(
  table: string,
  tenant: string,
  given: Readonly<Record<string, string | undefined>>,
  {
    where = '',
    holds,
    order,
    limit,
  }: { where?: string; holds?: string | undefined; order: string; limit: number | undefined },
): [Statement, unknown[]] {
  const conditions = Object.entries(given).filter(([, value]) => value !== undefined);
  const columns = conditions.map(([column], index) => ` AND ${column} = $${index + 3}`).join('');
  const held = holds === undefined ? '' : ` AND strpos(message, $${conditions.length + 3}) > 0`;
  const text = `SELECT * FROM holdfast.${table} WHERE tenant = $1${columns}${where}${held} ORDER BY ${order} LIMIT $2`;
  const named = `${conditions.map(([column]) => column).join()}:${where === '' ? '' : where.length}`;
  const name = `${table}:${named}${held === '' ? '' : ':holds'}`;
  const values = conditions.map(([, value]) => value);
  return [{ name, text }, [tenant, limit ?? null, ...values, ...(holds === undefined ? [] : [holds])]];
}
