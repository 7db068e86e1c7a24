/** Conditions on the columns of `ofRef` and `ofKey`. */
export const THIS_CASE = 'tenant = @tenant AND root = @root AND case_id = @case_id';
export const THIS_ATTEMPT =
  'tenant = @tenant AND root = @root AND sender = @sender AND handoff_id = @handoff_id AND attempt = @attempt';

/** True only while the case is open with this owner at this epoch: the fence, inside the statement that writes. */
export const FENCE = `EXISTS (SELECT 1 FROM cases c WHERE c.tenant = @tenant AND c.root = @root
  AND c.case_id = @case_id AND c.owner = @guard_owner AND c.epoch = @guard_epoch AND c.status = 'open')`;

/** For the rows `o` of a table with a case's columns: claimed by nobody who lives at @now, and not of a quarantined case. */
export const isFree = (what: 'offer' | 'work', id: string): string =>
  `NOT EXISTS (SELECT 1 FROM claims c JOIN holders h ON h.holder = c.holder
     WHERE c.tenant = o.tenant AND c.what = '${what}' AND c.id = ${id} AND h.until > @now)
   AND NOT EXISTS (SELECT 1 FROM quarantines q
     WHERE q.tenant = o.tenant AND q.root = o.root AND q.case_id = o.case_id)`;

/** `INSERT` of these columns from parameters of the same names; `fenced` ones happen only while the fence holds. */
export function insertInto(table: string, columns: readonly string[], fenced = false): string {
  const values = columns.map((column) => `@${column}`).join(', ');
  const source = fenced ? `SELECT ${values} WHERE ${FENCE}` : `VALUES (${values})`;
  return `INSERT INTO ${table} (${columns.join(', ')}) ${source}`;
}

/** `AND column = @name` for each that is given. */
export function whereGiven(conditions: Readonly<Record<string, unknown>>): string {
  return Object.entries(conditions)
    .filter(([, value]) => value !== undefined)
    .map(([column]) => ` AND ${column} = @${column}`)
    .join('');
}
