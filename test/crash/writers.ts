import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { pause } from '../../src/core/index.js';
import { seeded } from '../seeded.js';
import type { CrashDatabase } from './databases.js';
import { judge, type Verdict } from './judge.js';
import { nothingTold, type Told } from './node.js';
import { leftIn } from './pair.js';
import { run } from './programs.js';
import { startTarget } from './target.js';

/** Processes that write at the same time, to one ledger. */
const WRITERS = 4;
/** A writer dies at a random moment after as many handovers as are drawn, or after this time. */
const MOST_HANDOVERS = 4;
const LONGEST_LIFE_MS = 5_000;
/** About as long as a handover takes with the work on it. */
const HANDOVER_MS = 40;
const SETTLE_MS = 60_000;
const AGENTS = { triage: 'https://triage.example', billing: 'https://billing.example', second: null };
const KIND = {
  kind: 'refund',
  systemOfRecord: 'billing database',
  mode: 'shared',
  contracts: ['refund-dispute/1'],
  policy: { caps: {}, prohibitions: [], operations: { '*': ['refund'] } },
  // What a dead process has started is looked up after a second.
  limits: { maxHops: 2, maxTasks: 5, acceptWithinMs: 3_600_000, effectLimitMs: 1_000 },
} as const;

interface Said {
  readonly ready?: true;
  readonly accepted?: string;
  readonly refused?: string;
  readonly violation?: string;
}

/** Kills at random moments of light processes that use the ledger without HTTP, several on one ledger, each followed by another. */
export async function killWriters(
  database: CrashDatabase,
  count: number,
  seed: number,
  deadline: number,
): Promise<Verdict & { readonly kills: number }> {
  const told = nothingTold();
  const target = await startTarget();
  const next = seeded(seed);
  const ledger = await database.open();
  let begun = 0;
  let killed = 0;

  const start = async (opens: boolean, onAccepted: () => void = () => undefined): Promise<ChildProcess> => {
    const args = [database.ledger, target.url, AGENTS.triage, AGENTS.billing];
    const child = run('writer', args);
    await new Promise<void>((resolve, reject) => {
      child.once('exit', () => reject(new Error('a writer ended at its start')));
      child.on('message', (message) => {
        const said = message as Said;
        if (said.ready) resolve();
        else hear(told, said);
        if (said.accepted) onAccepted();
      });
    });
    child.send({ opens }, () => undefined);
    return child;
  };

  const slot = async (): Promise<void> => {
    while (begun < count && Date.now() < deadline) {
      begun++;
      let handovers = Math.floor(next() * (MOST_HANDOVERS + 1));
      const old = new AbortController();
      const child = await start(true, () => {
        handovers -= 1;
        if (handovers <= 0) old.abort();
      });
      if (handovers > 0) await pause(LONGEST_LIFE_MS, old.signal);
      await sleep(next() * HANDOVER_MS);
      if (child.exitCode !== null) throw new Error(`a writer ended by itself, with ${child.exitCode}`);
      await end(child);
      killed++;
    }
  };

  try {
    await ledger.putKind('default', KIND);
    await Promise.all(Array.from({ length: WRITERS }, slot));
    const last = await start(false);
    try {
      const settled = Date.now() + SETTLE_MS;
      let left = await leftIn(ledger);
      for (; left !== '' && Date.now() < settled; left = await leftIn(ledger)) await sleep(200);
      if (left !== '') told.violations.push(`after ${SETTLE_MS / 1000} s there are still ${left}`);
    } finally {
      await end(last);
    }
    const verdict = await judge(ledger, AGENTS, told, target);
    if (verdict.accepted < count) told.violations.push('too few handovers for the run to say anything');
    return { ...verdict, kills: killed };
  } finally {
    await ledger.close();
    await target.close();
  }
}

function hear(told: Told, { accepted, refused, violation }: Said): void {
  if (accepted !== undefined) told.accepted.add(accepted);
  if (violation !== undefined) told.violations.push(violation);
  if (refused !== undefined) told.outcomes.set(refused, (told.outcomes.get(refused) ?? 0) + 1);
}

async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await gone;
}
