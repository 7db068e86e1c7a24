import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Database from 'better-sqlite3';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { bill } from '../../examples/fences/present.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openPostgresLedger, openSqliteLedger } from '../../src/storage/index.js';
import { run, temporaryFolder } from '../cli/support.js';
import { createTestDatabase } from '../postgres/database.js';
import { acceptance, BILLING, intend, KIND, TestClock } from '../storage/suite/fixtures.js';

const PAGE = readFileSync('docs/guide/fences.md', 'utf8');
const AGENT = 'http://127.0.0.1:4100';
const ref = { tenant: 'default', root: AGENT, caseId: 'CASE-7001' };

/** The blocks of shell and SQL under a heading, in order. */
function blocksUnder(heading: string): { language: string; text: string }[] {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^```(sh|sql)\n([\s\S]*?)^```$/gm)].map(([, language = '', text = '']) => ({
    language,
    text: text.replaceAll('\\\n', ' '),
  }));
}

/** Runs the section as it is written: commands through the command, SQL through a plain driver. */
async function runSection(
  heading: string,
  fill: (word: string) => string,
  runSql: (sql: string) => unknown,
): Promise<number> {
  const blocks = blocksUnder(heading);
  for (const { language, text } of blocks) {
    if (language === 'sql') await runSql(text);
    else {
      for (const line of text.trim().split('\n')) {
        const words = line.split(/\s+/).slice(1).map(fill);
        expect(await run(...words), line).toMatchObject({ exit: 0 });
      }
    }
  }
  return blocks.length;
}

/** Another agent accepts the case of the guide. */
async function handOver(ledger: LedgerStore, clock: TestClock): Promise<void> {
  const identity = { tenant: ref.tenant, root: AGENT, sender: AGENT, handoffId: 'CASE-7001:2', attempt: 1 };
  const offer = await ledger.intendOffer(intend(clock, { ref, writer: AGENT, epoch: 1 }));
  await ledger.markOffered(offer.key);
  const accepted = await ledger.accept(
    acceptance(clock, {
      ref,
      key: identity,
      principal: { agent: AGENT, tenant: ref.tenant, tokenId: 'jti-1' },
      epoch: 1,
    }),
  );
  expect(accepted).toMatchObject({ outcome: 'accepted' });
}

const example = async (name: string, ...words: string[]): Promise<string> =>
  (
    await promisify(execFile)(process.execPath, [join('examples/fences', name), ...words], {
      timeout: 20_000,
    })
  ).stdout.trim();

describe('the guide to fences', () => {
  const folder = temporaryFolder();
  const clock = new TestClock();

  afterAll(() => folder.remove());

  it('[R-075][R-080] works as it is written, on SQLite', async () => {
    const file = join(folder.path, 'ledger.db');
    const blocks = await runSection(
      'SQLite',
      (word) => word.replace('.holdfast', folder.path),
      (sql) => new Database(file).exec(sql).close(),
    );
    expect(blocks).toBe(3);
    const owner = ['sqlite.mjs', file, 'CASE-7001', '1', AGENT] as const;
    expect(await example(...owner)).toBe('written');
    const ledger = await openSqliteLedger({ file, clock });
    await handOver(ledger, clock);
    await ledger.close();
    expect(await example(...owner)).toBe('holdfast: HF002 INSERT on invoices: the case has a newer epoch');
    expect(await example('sqlite.mjs', file, 'CASE-7001', '2', BILLING)).toBe('written');
  });

  it('[R-075][R-080] works as it is written, on PostgreSQL', async () => {
    const database = await createTestDatabase();
    const client = new pg.Client(database.url);
    await client.connect();
    try {
      const blocks = await runSection(
        'PostgreSQL',
        (word) => word.replace('$LEDGER', database.url),
        (sql) => client.query(sql),
      );
      expect(blocks).toBe(3);
      const ledger = await openPostgresLedger({ url: database.url, clock });
      await ledger.putKind(ref.tenant, KIND);
      await ledger.openCase({ ref, kind: 'refund', owner: AGENT, epoch: 1, actor: AGENT });
      const owner = ['postgres.mjs', database.url, 'CASE-7001', '1', AGENT] as const;
      expect(await example(...owner)).toBe('written');
      expect(await bill(client, 'CASE-7001', 1)).toBe(true);
      await handOver(ledger, clock);
      await ledger.close();
      expect(await example(...owner)).toMatch(/^HF002 holdfast: case CASE-7001 has a newer epoch/);
      expect(await bill(client, 'CASE-7001', 1)).toBe(false);
      expect(await example('postgres.mjs', database.url, 'CASE-7001', '2', BILLING)).toBe('written');
    } finally {
      await client.query('DROP OWNED BY billing_app; DROP ROLE billing_app');
      await client.end();
      await database.drop();
    }
  });

  it('shows the example of the library as it runs', () => {
    const text = readFileSync('examples/fences/present.ts', 'utf8').replace('../../src/index.js', 'holdfast');
    expect(PAGE).toContain(`\`\`\`ts\n${text}\`\`\``);
  });
});
