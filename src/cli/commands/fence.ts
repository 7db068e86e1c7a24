import type { Command } from 'commander';
import { HoldfastError } from '../../core/index.js';
import { type FenceReport, type FenceSource, type FenceSpec, postgresFenceSql } from '../../fence/index.js';
import { isPostgresUrl, openFences, redactUrl } from '../../node/index.js';
import { EXIT } from '../exit-codes.js';
import { type CommonOptions, group, leaf, type Result, type Session } from '../run.js';
import { withPlace } from './db.js';

type Dialect = 'postgres' | 'sqlite';

interface FenceOptions extends CommonOptions {
  dialect: string;
  table: string;
  caseColumn: string;
  schema?: string;
  tenant?: string;
  tenantColumn?: string;
  root?: string;
  rootColumn?: string;
  tokenColumn?: string;
  role?: string;
}

const ON_POSTGRES =
  '--dialect postgres --table invoices --case-column case_id --tenant default --root https://triage.example';
const ON_SQLITE =
  '--dialect sqlite --table invoices --case-column case_id --tenant default --root-column root';

export function addFence(program: Command, session: Session): void {
  const fence = group(
    program,
    'fence',
    'fences in your own tables, against late writes',
    `fence apply ${ON_SQLITE} --dir triage`,
  );
  const command = (name: string, summary: string, act: (options: FenceOptions) => Promise<void>) =>
    leaf(fence, name, summary, [`fence ${name} ${ON_POSTGRES}`, `fence ${name} ${ON_SQLITE} --db ledger.db`])
      .requiredOption('--dialect <dialect>', 'postgres or sqlite')
      .requiredOption('--table <name>', 'the table, exactly as it is named')
      .requiredOption('--case-column <name>', 'its column with the case id')
      .option('--tenant <name>', 'the tenant of all its rows')
      .option('--tenant-column <name>', 'or the column with the tenant')
      .option('--root <url>', 'the agent that opened the cases of all its rows')
      .option('--root-column <name>', 'or the column with the root')
      .option('--schema <name>', 'the schema of the table, in PostgreSQL (default: public)')
      .option('--role <name>', 'a role that writes to the table, in PostgreSQL')
      .option('--token-column <name>', 'the column that statements set, in SQLite (default: holdfast_token)')
      .action(act);

  command('sql', 'print the SQL of a fence, for your own migrations', (options) => {
    if (dialectOf(options) === 'sqlite') {
      return withFences(session, options, async (fences, spec) => printed(await fences.sql(spec)));
    }
    return session.finish(options, async () => printed(postgresFenceSql(specOf(options))));
  });
  command('apply', 'put a fence on a table, in one transaction', (options) =>
    withFences(session, options, async (fences, spec, target) => {
      await fences.apply(spec);
      return {
        json: { table: spec.table, target, applied: true },
        text: `${spec.table} in ${target} has its fence.`,
      };
    }),
  );
  command('check', 'say whether a fence is there, whole and in force', (options) =>
    withFences(session, options, async (fences, spec, target) =>
      showReport(await fences.check(spec), target),
    ),
  );
}

function withFences(
  session: Session,
  options: FenceOptions,
  work: (fences: Awaited<ReturnType<typeof openFences>>, spec: FenceSpec, target: string) => Promise<Result>,
): Promise<void> {
  return withPlace(session, options, async ({ target, options: { postgres } }) => {
    const spec = specOf(options);
    if (isPostgresUrl(target) !== (dialectOf(options) === 'postgres')) {
      throw new HoldfastError(
        'usage',
        `The ledger ${redactUrl(target)} is not of the dialect ${options.dialect}.`,
      );
    }
    const fences = await openFences(target, postgres?.connectMs);
    try {
      return await work(fences, spec, redactUrl(target));
    } finally {
      await fences.close();
    }
  });
}

const printed = (sql: string): Result => ({ json: { sql }, text: sql });

function showReport(report: FenceReport, target: string): Result {
  const { table, ok, problems, notes } = report;
  return {
    json: { target, ...report },
    text: [
      ...problems.map(
        ({ relation, about, state, problem }) => `${relation}: ${about}: ${problem} (${state})`,
      ),
      ok
        ? `The fence of ${table} in ${target} is in force.`
        : `The fence of ${table} in ${target} is NOT whole.`,
      ...notes,
    ].join('\n'),
    exit: ok ? EXIT.ok : EXIT.unsafe,
  };
}

function dialectOf({ dialect }: FenceOptions): Dialect {
  if (dialect === 'postgres' || dialect === 'sqlite') return dialect;
  throw new HoldfastError('usage', '--dialect is postgres or sqlite.');
}

function specOf(options: FenceOptions): FenceSpec {
  const { table, caseColumn, schema, role, tokenColumn } = options;
  const foreign =
    dialectOf(options) === 'postgres'
      ? { '--token-column': tokenColumn }
      : { '--schema': schema, '--role': role };
  for (const [name, value] of Object.entries(foreign)) {
    if (value !== undefined)
      throw new HoldfastError('usage', `${name} is not for --dialect ${options.dialect}.`);
  }
  return {
    table,
    caseColumn,
    tenant: sourceOf('tenant', options.tenant, options.tenantColumn),
    root: sourceOf('root', options.root, options.rootColumn),
    ...(schema === undefined ? {} : { schema }),
    ...(role === undefined ? {} : { role }),
    ...(tokenColumn === undefined ? {} : { tokenColumn }),
  };
}

function sourceOf(name: string, value: string | undefined, column: string | undefined): FenceSource {
  if (value !== undefined && column === undefined) return { value };
  if (column !== undefined && value === undefined) return { column };
  throw new HoldfastError('usage', `Give either --${name} or --${name}-column.`);
}
