import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Acts } from './acts.js';

/** The business system of both agents: carries effects out one after the other, takes its time, and keeps what it has done. */
export interface EffectTarget {
  readonly url: string;
  readonly acts: Acts;
  /** Calls that came when their time was over, and were not carried out. */
  late(): number;
  close(): Promise<void>;
}

/** As long as an effect may take at the target, milliseconds. */
const LONGEST_MS = 25;

export async function startEffectTarget(next: () => number): Promise<EffectTarget> {
  const acts = new Acts();
  let late = 0;

  /** Resolves to what it answers; how often it has happened by then. */
  async function answer({ method, headers }: IncomingMessage): Promise<object> {
    const [caseId, key] = [String(headers['x-case']), String(headers['idempotency-key'])];
    const times = () => acts.of(caseId).filter((act) => act.key === key).length;
    if (method !== 'POST') {
      if (times() > 0) acts.told(caseId, key);
      return { calls: times() };
    }
    const until = Number(headers['x-until']);
    // The caller's ledger may have let go of it since: whoever owns the case now would be told that it did not happen.
    if (now() >= until) {
      late += 1;
      return { late: true };
    }
    const over = acts.admit(
      { caseId, key, agent: String(headers['x-agent']), epoch: Number(headers['x-epoch']), until },
      now(),
    );
    await new Promise((resolve) => setTimeout(resolve, next() * LONGEST_MS));
    over();
    return { calls: times() };
  }

  const server = createServer((request, response) => {
    request.resume().on('end', async () => response.end(JSON.stringify(await answer(request))));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    acts,
    late: () => late,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Of the machine, so that a process may say until when its effect may happen: milliseconds, the same in every process. */
function now(): number {
  return Number(process.hrtime.bigint() / 1_000n) / 1_000;
}
