import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import type { Task } from '../../src/protocol/index.js';
import {
  answerTo,
  expectDecidedOnce,
  heardEachOther,
  type Mode,
  type Pair,
  QUERY_WAIT,
  startPair,
} from './support.js';

/** Runs what is in `dist/`; `npm test` builds first. */
const DOOMED = join(import.meta.dirname, 'doomed.mjs');
const LIMIT_MS = 60_000;
const NOW = { returnImmediately: true };
const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

/** Billing's process, which is killed where the faults say so. */
async function doom(pair: Pair, faults: string): Promise<ChildProcess> {
  const args = [join(pair.folder, 'billing'), JSON.stringify(pair.configOf('billing'))];
  const child = fork(DOOMED, args, {
    env: { ...process.env, HOLDFAST_FAULTS: faults },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  children.push(child);
  await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('the process ended'))),
  ]);
  await heardEachOther([pair.triage, pair.billing]);
  return child;
}

/** The same bytes until somebody answers, as a sender does whose receiver died. */
async function sendUntilAnswered(pair: Pair, message: object, configuration: object): Promise<Task> {
  return vi.waitUntil(() => pair.send(message, configuration).catch(() => null), QUERY_WAIT);
}

const CASES = [
  ['before it is stored', 'R2.before_store', 'CASE-1'],
  ['between storing and deciding', 'R2.stored', 'CASE-1'],
  ['when its check begins in the background', 'R2.before_judging', 'CASE-1'],
  ['between the acceptance and its answer', 'R3.after_commit', 'CASE-1'],
  ['when an answer is stored', 'R2.answered', 'CASE-2'],
] as const;

it.each(
  CASES.flatMap(([when, point, caseId]) =>
    (['shared', 'separate'] as const).map((mode): [string, Mode, string, string] => [
      when,
      mode,
      point,
      caseId,
    ]),
  ),
)(
  '[R-083][R-093] a receiver killed %s (%s) loses nothing, and decides once',
  async (_when, mode, point, caseId) => {
    const pair = await startPair(mode, { billing: false });
    const first = await doom(pair, `${point}=kill9`);
    const died = once(first, 'exit');
    const offer = pair.offer(caseId);
    const begun = await pair.send(offer, NOW).catch(() => null);
    if (caseId === 'CASE-2') {
      const task = begun ?? (await sendUntilAnswered(pair, offer, NOW));
      await vi.waitUntil(
        async () => (await pair.ask('GetTask', { id: task.id })).status.state === 'TASK_STATE_INPUT_REQUIRED',
        QUERY_WAIT,
      );
      await pair.send(answerTo(pair, task, {}, caseId)).catch(() => null);
    }
    await died;
    await doom(pair, '');
    if (point === 'R2.before_store') expect(begun).toBeNull();
    const stored = await pair.billing.listPending();
    const { ledger } = pair.billing;
    // Where it was stored, nobody has to send anything again.
    if (stored.length > 0 && point !== 'R2.before_store') {
      const decided = async () => (await ledger.snapshot(pair.ref(caseId))).decisions.length;
      await expect.poll(decided, QUERY_WAIT).toBe(1);
    }
    const task = await sendUntilAnswered(pair, offer, {});
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    if (begun !== null) expect(task.id).toBe(begun.id);
    await expectDecidedOnce(pair, 'accepted', caseId);
  },
  LIMIT_MS,
);
