import { strict as assert } from 'node:assert';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { verifyChain } from '../../src/audit/index.js';
import { isHoldfastError } from '../../src/core/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { openPostgresLedger } from '../../src/storage/index.js';
import { type PostgresServer, startPostgres } from '../postgres/server.js';
import { KIND, openCase, ref } from '../storage/suite/fixtures.js';
import type { FaultCase } from './run.js';

const HEAL_MS = 30_000;
const MOST = 4_000;

interface Written {
  readonly done: string[];
  readonly codes: Map<string, number>;
}

/** Opens a case and says what came of it. */
async function write(ledger: LedgerStore, caseId: string, written: Written): Promise<void> {
  try {
    await openCase(ledger, caseId);
    written.done.push(caseId);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    written.codes.set(error.code, (written.codes.get(error.code) ?? 0) + 1);
  }
}

function told({ done, codes }: Written): string {
  return [`${done.length} acknowledged`, ...[...codes].map(([code, count]) => `${count} ${code}`)].join(', ');
}

function assertOnly(codes: ReadonlyMap<string, number>, ...known: string[]): void {
  assert.ok(codes.size > 0, 'the fault was not noticed');
  for (const code of codes.keys()) assert.ok(known.includes(code), `answered ${code}`);
}

async function untilWritten(ledger: LedgerStore, prefix: string, written: Written): Promise<void> {
  const before = written.done.length;
  for (const end = Date.now() + HEAL_MS; written.done.length === before; await sleep(200)) {
    assert.ok(Date.now() < end, 'nothing can be written once it is healed');
    await write(ledger, `${prefix}-${Date.now()}`, written);
  }
}

async function assertKept(ledger: LedgerStore, { done }: Written): Promise<void> {
  for (const caseId of done) {
    assert.ok(await ledger.getCase(ref(caseId)), `${caseId} was acknowledged and is gone`);
    assert.ok(verifyChain(await ledger.readAudit(ref(caseId))).ok, `the chain of ${caseId} is broken`);
  }
}

function postgresCase(
  name: string,
  options: { readonly connections?: number; readonly waiting?: number; readonly settleMs?: number },
  act: (server: PostgresServer, ledger: LedgerStore, written: Written) => Promise<void>,
): FaultCase {
  return {
    name: `PostgreSQL: ${name}`,
    async run() {
      const server = await startPostgres();
      try {
        const ledger = await openPostgresLedger({ url: server.url(), ...options });
        try {
          const written: Written = { done: [], codes: new Map() };
          await ledger.putKind('acme', KIND);
          for (let n = 0; n < 20; n += 1) await write(ledger, `BEFORE-${n}`, written);
          await act(server, ledger, written);
          await untilWritten(ledger, 'AFTER', written);
          await assertKept(ledger, written);
          return told(written);
        } finally {
          await ledger.close();
        }
      } finally {
        await server.remove();
      }
    },
  };
}

/** Every write to the files of the ledger's tables fails, whoever of the server makes it; its own log has room. */
async function fillDisk(server: PostgresServer): Promise<ChildProcess> {
  const rows = await server.query(
    `SELECT pg_relation_filepath(c.oid) AS path FROM pg_class c
     WHERE c.relnamespace = 'holdfast'::regnamespace AND c.relkind IN ('r', 'i')`,
  );
  const postmaster = readFileSync(join(server.dataDir, 'postmaster.pid'), 'utf8').split('\n')[0] ?? '';
  const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, 'utf8').trim().split(' ');
  const strace = spawn(
    'strace',
    [
      ...['-f', '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64,pwritev,fallocate'],
      ...['-e', 'inject=pwrite64,pwritev,fallocate:error=ENOSPC'],
      ...rows.flatMap(({ path }) => ['-P', join(server.dataDir, String(path))]),
      ...[postmaster, ...children].flatMap((pid) => ['-p', pid]),
    ],
    { stdio: 'ignore' },
  );
  await sleep(1_000);
  assert.equal(strace.exitCode, null, 'strace could not attach to the server');
  return strace;
}

export const POSTGRES_CASES: readonly FaultCase[] = [
  postgresCase('the disk is full for a while', {}, async (server, ledger, written) => {
    const strace = await fillDisk(server);
    try {
      for (let n = 0; written.codes.size === 0 && n < MOST; n += 8) {
        const ids = Array.from({ length: 8 }, (_, i) => `DURING-${n + i}`);
        await Promise.all(ids.map((id) => write(ledger, id, written)));
      }
      assertOnly(written.codes, 'ledger_unavailable', 'outcome_unknown');
    } finally {
      const gone = new Promise((resolve) => strace.once('exit', resolve));
      strace.kill('SIGTERM');
      await gone;
    }
  }),
  postgresCase('the database is read-only for a while', {}, async (server, ledger, written) => {
    await server.query('ALTER SYSTEM SET default_transaction_read_only = on');
    await server.query('SELECT pg_reload_conf()');
    for (let n = 0; written.codes.size === 0 && n < 200; n += 1) {
      await write(ledger, `DURING-${n}`, written);
      await sleep(20);
    }
    assertOnly(written.codes, 'ledger_unavailable');
    assert.ok(await ledger.getCase(ref('BEFORE-0')), 'a read-only ledger cannot be read');
    await server.query('ALTER SYSTEM RESET default_transaction_read_only');
    await server.query('SELECT pg_reload_conf()');
  }),
  postgresCase('the pool is exhausted', { connections: 2, waiting: 16 }, async (server, ledger, written) => {
    const other = new pg.Client({ connectionString: server.url() });
    await other.connect();
    try {
      await other.query('BEGIN');
      await other.query('LOCK TABLE holdfast.cases IN ACCESS EXCLUSIVE MODE');
      const writes = Array.from({ length: 400 }, (_, n) => write(ledger, `DURING-${n}`, written));
      for (let n = 0; written.codes.size === 0 && n < 100; n += 1) await sleep(10);
      // While the others still wait: it is said at once, and not when their time is up.
      assertOnly(written.codes, 'busy');
      assert.equal(written.done.length, 20);
      await other.query('ROLLBACK');
      await Promise.all(writes);
      assertOnly(written.codes, 'busy');
      assert.ok(written.done.length > 20, 'what had a place was not written either');
    } finally {
      await other.end();
    }
  }),
];
