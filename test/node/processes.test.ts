import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../src/core/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { type Holdfast, initAgent, openHoldfast } from '../../src/node/index.js';
import { openSqliteLedger } from '../../src/storage/index.js';
import { temporaryFolder } from '../cli/support.js';

const HOLDER = 'http://127.0.0.1:4100#run_before';
let folder: ReturnType<typeof temporaryFolder>;
let dir: string;
let ledger: LedgerStore;
const opened: Holdfast[] = [];

beforeEach(async () => {
  folder = temporaryFolder();
  dir = join(folder.path, 'triage');
  await initAgent({ dir, agent: 'triage', url: 'http://127.0.0.1:4100', ledger: '../ledger.db' });
  ledger = await openSqliteLedger({ file: join(folder.path, 'ledger.db') });
});

afterEach(async () => {
  for (const holdfast of opened.splice(0)) await holdfast.close();
  await ledger.close();
  folder.remove();
});

async function start(): Promise<Holdfast> {
  const holdfast = await openHoldfast({ dir, logger: silentLogger });
  opened.push(holdfast);
  await holdfast.start({ port: 0 });
  return holdfast;
}

const run = () => join(dir, 'run');
const entries = () => readdirSync(run()).filter((name) => name.endsWith('.json'));

/** What a running process of the agent leaves, with some of it changed, as that of an earlier one whose lease has not run out. */
async function leaveEntry(change: Record<string, unknown>): Promise<void> {
  const running = await start();
  const entry = JSON.parse(readFileSync(join(run(), entries()[0] ?? ''), 'utf8'));
  await running.close();
  opened.length = 0;
  await ledger.heartbeat(HOLDER, 60_000);
  mkdirSync(run(), { recursive: true });
  writeFileSync(join(run(), 'before.json'), JSON.stringify({ ...entry, holder: HOLDER, ...change }));
}

async function pidOfTheDead(): Promise<number | undefined> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid;
}

describe('[R-189] the lease of an earlier process of the agent', () => {
  it('is ended at the next start where the process is gone', async () => {
    await leaveEntry({ pid: await pidOfTheDead() });
    await start();
    expect(await ledger.isAlive(HOLDER)).toBe(false);
    expect(entries()).toHaveLength(1);
  });

  it('is ended where another process has its pid by now', async () => {
    await leaveEntry({ started: '1' });
    await start();
    expect(await ledger.isAlive(HOLDER)).toBe(false);
  });

  it('is left to run out where the process lives', async () => {
    await leaveEntry({});
    await start();
    expect(await ledger.isAlive(HOLDER)).toBe(true);
    expect(entries()).toHaveLength(2);
  });

  it('is left to run out where it ran on another machine, whose pids mean something else', async () => {
    await leaveEntry({ pid: await pidOfTheDead(), machine: 'elsewhere' });
    await start();
    expect(await ledger.isAlive(HOLDER)).toBe(true);
  });

  it('is left to run out where nothing can be read of the process', async () => {
    await leaveEntry({});
    writeFileSync(join(run(), 'before.json'), '{"holder":');
    await start();
    expect(await ledger.isAlive(HOLDER)).toBe(true);
    expect(entries()).toHaveLength(1);
  });

  it('leaves nothing behind where the process ends in order', async () => {
    const running = await start();
    expect(entries()).toHaveLength(1);
    await running.close();
    opened.length = 0;
    expect(entries()).toEqual([]);
  });
});
