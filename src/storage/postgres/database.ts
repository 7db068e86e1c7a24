import pg from 'pg';
import type { CaseRef } from '../../core/index.js';
import { HoldfastError } from '../../core/index.js';
import type { LedgerDatabase, Row, Value } from '../care/database.js';
import type { Finding } from '../care/inspection.js';
import { LEDGER_TABLES, type LedgerTable } from '../care/tables.js';
import { ofRef, type RefColumns, toRef } from '../rows/keys.js';
import { toHoldfastError } from './errors.js';
import { KNOWN_VERSION } from './migrations/index.js';
import { decodeText, encodeText } from './text.js';
import { inspectPostgres } from './topology.js';

const BATCH = 200;

/** What the tables here have besides the columns of every engine, and what a restored row has in it. */
const OWN_COLUMNS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  kinds: { revision: '1' },
  audit: { commit_id: 'gen_random_uuid()' },
};

const REF = 'tenant, root, case_id';
/** Tables without a place of their own for the order in which rows were made. */
const ORDER: Readonly<Record<string, string>> = {
  kinds: 'tenant, kind',
  tasks: 'tenant, id',
  notifications: 'push_id, seq',
  audit: `${REF}, seq`,
};

const BEHIND = `(${REF}) > ($1, $2, $3) ORDER BY ${REF} LIMIT $4`;
const CASES_AFTER = `(SELECT ${REF} FROM holdfast.cases WHERE ${BEHIND})
  UNION (SELECT ${REF} FROM holdfast.audit WHERE seq = 1 AND ${BEHIND}) ORDER BY ${REF} LIMIT $4`;

/** Opens one connection, which looks at a standby, too. @throws ledger_unavailable */
export async function openPostgresDatabase(url: string, connectMs: number): Promise<LedgerDatabase> {
  const client = clientOf(url, connectMs);
  // Each query fails by itself where the connection breaks.
  client.on('error', () => {});
  const query = async <R extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<R[]> => {
    try {
      return (await client.query<R>(sql, values)).rows;
    } catch (error) {
      throw toHoldfastError(error);
    }
  };
  try {
    await client.connect();
  } catch (error) {
    throw toHoldfastError(error);
  }
  const count = async (table: string, where = 'true'): Promise<number> =>
    (await query<{ n: number }>(`SELECT count(*) AS n FROM holdfast.${table} WHERE ${where}`))[0]?.n ?? 0;
  const transaction = async <T>(begin: string, work: () => Promise<T>): Promise<T> => {
    await query(begin);
    try {
      const result = await work();
      await query('COMMIT');
      return result;
    } catch (error) {
      await query('ROLLBACK').catch(() => []);
      throw error;
    }
  };
  const schema = async () => {
    const [there] = await query<{ found: boolean }>(
      "SELECT to_regclass('holdfast.migrations') IS NOT NULL AS found",
    );
    const sql = 'SELECT coalesce(max(version), 0)::int AS found FROM holdfast.migrations';
    const found = there?.found ? ((await query<{ found: number }>(sql))[0]?.found ?? 0) : 0;
    return { found, known: KNOWN_VERSION };
  };

  return {
    engine: 'postgres',
    schema,
    incarnation: async () =>
      (await query<{ value: string }>("SELECT value FROM holdfast.meta WHERE name = 'incarnation'"))[0]
        ?.value ?? '',
    count,
    casesAfter: async (last: CaseRef | null, limit: number) => {
      const { tenant, root, case_id } = ofRef(last ?? { tenant: '', root: '', caseId: '' });
      const after = [tenant, root, case_id].map(encodeText);
      return (await query<RefColumns>(CASES_AFTER, [...after, limit])).map(toRef);
    },
    frozen: (work) => transaction('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY', work),
    async *rows({ name, columns }: LedgerTable) {
      const order = ORDER[name] ?? 'ord';
      await query(
        `DECLARE kept NO SCROLL CURSOR FOR SELECT ${columns.join(', ')} FROM holdfast.${name} ORDER BY ${order}`,
      );
      for (let rows: Record<string, Value>[] = [{}]; rows.length > 0; ) {
        rows = await query<Record<string, Value>>(`FETCH ${BATCH} FROM kept`);
        yield rows.map((row): Row => columns.map((column) => row[column] ?? null));
      }
      await query('CLOSE kept');
    },
    fill: (incarnation, work) =>
      transaction('BEGIN', async () => {
        // Nobody else writes meanwhile; readers see the ledger empty until it is whole.
        const names = LEDGER_TABLES.map(({ name }) => `holdfast.${name}`).join(', ');
        await query(`LOCK TABLE ${names} IN EXCLUSIVE MODE`);
        for (const { name } of LEDGER_TABLES) {
          if ((await count(name)) > 0) {
            throw new HoldfastError('already_exists', `The ledger is not empty: it has ${name}.`);
          }
        }
        const result = await work((table, columns, rows) => add(query, table, columns, rows));
        await query(`INSERT INTO holdfast.audit_heads (${REF}, seq, hash)
          SELECT DISTINCT ON (${REF}) ${REF}, seq, hash FROM holdfast.audit ORDER BY ${REF}, seq DESC`);
        await query("UPDATE holdfast.meta SET value = $1 WHERE name = 'incarnation'", [incarnation]);
        return result;
      }),
    inspect: async () => {
      try {
        return await inspectPostgres(client);
      } catch (error) {
        throw toHoldfastError(error);
      }
    },
    check: async () => ((await schema()).found === 0 ? [] : damageOf(query)),
    close: () => client.end().catch(() => undefined),
  };
}

/** Reads the files that the URL names. */
function clientOf(url: string, connectMs: number): pg.Client {
  try {
    return new pg.Client({
      connectionString: url,
      application_name: 'holdfast db',
      connectionTimeoutMillis: connectMs,
      types: {
        getTypeParser: (oid, format) => PARSERS[oid] ?? pg.types.getTypeParser(oid, format as 'text'),
      },
    });
  } catch (error) {
    throw toHoldfastError(error);
  }
}

type Query = <R extends pg.QueryResultRow>(sql: string, values?: unknown[]) => Promise<R[]>;

async function add(
  query: Query,
  table: string,
  columns: readonly string[],
  rows: readonly Row[],
): Promise<void> {
  const own = OWN_COLUMNS[table] ?? {};
  const objects = rows.map((row) =>
    Object.fromEntries(columns.map((column, at) => [column, encoded(row[at])])),
  );
  await query(
    `INSERT INTO holdfast.${table} (${[...columns, ...Object.keys(own)].join(', ')})
      SELECT ${[...columns.map((column) => `r.${column}`), ...Object.values(own)].join(', ')}
      FROM json_populate_recordset(NULL::holdfast.${table}, $1::json) WITH ORDINALITY AS r ORDER BY r.ordinality`,
    [JSON.stringify(objects)],
  );
}

const encoded = (value: Value | undefined) => (typeof value === 'string' ? encodeText(value) : value);

const PARSERS: Readonly<Record<number, (text: string) => unknown>> = { 20: Number, 25: decodeText };

/** Triggers that were switched off hold nothing, and what the server itself has noticed. */
const DAMAGE = `
  SELECT 'trigger_off' AS code, format('The trigger %s on %s is switched off.', tgname, tgrelid::regclass) AS message
    FROM pg_trigger WHERE tgenabled IN ('D', 'R') AND NOT tgisinternal
      AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace)
  UNION ALL SELECT 'damaged', format('The index %s is not valid.', indexrelid::regclass)
    FROM pg_index WHERE NOT indisvalid
      AND indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'holdfast'::regnamespace)
  UNION ALL SELECT 'damaged', format('%s pages of this database failed their checksum.', checksum_failures)
    FROM pg_stat_database WHERE datname = current_database() AND checksum_failures > 0
  UNION ALL SELECT 'head_wrong', format('The audit head of %s (root %s) is not the end of its chain.', case_id, root)
    FROM holdfast.audit_heads h FULL JOIN
      (SELECT DISTINCT ON (${REF}) ${REF}, seq, hash FROM holdfast.audit ORDER BY ${REF}, seq DESC) a
      USING (${REF}, seq, hash) WHERE h.tenant IS NULL OR a.tenant IS NULL
  LIMIT 50`;

async function damageOf(query: Query): Promise<Finding[]> {
  const rows = await query<{ code: string; message: string }>(DAMAGE);
  return rows.map(({ code, message }) => ({ severity: 'unsafe', code, message }));
}
