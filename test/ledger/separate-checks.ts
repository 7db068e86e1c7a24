import type { AcceptanceKey } from '../../src/core/index.js';
import type { CaseSnapshot, Transfer } from '../../src/ledger/index.js';
import type { Performed } from './separate-net.js';

/* What must hold over all the ledgers of one case, whatever the nodes and the network did. Each throws what does not, with its name. */

/** What ledgers that were put back do not know any more. Each has made it known by then, or it stays lost. */
export interface Lost {
  /** Changes of owner by name, with the epoch of each. */
  readonly transfers: Map<string, number>;
  /** `lostBy` of each. */
  readonly decisions: Set<string>;
  /** Attempts of which something was lost: their keys may come to stand for other bytes. */
  readonly attempts: Set<string>;
  /** Of which no ledger knew: what only the business system can tell, by its key. */
  readonly effects: Set<Performed>;
}

const NOTHING: Lost = {
  transfers: new Map(),
  decisions: new Set(),
  attempts: new Set(),
  effects: new Set(),
};

/** Changes of owner that ever stood in a ledger, by epoch. */
export type Issued = Map<number, Set<string>>;

/** H2: epochs rise by one at every change of owner, over all ledgers, and none is issued twice. */
export function checkEpochs(
  now: readonly CaseSnapshot[],
  before: readonly CaseSnapshot[],
  issued: Issued = new Map(),
  lost: Lost = NOTHING,
): void {
  const standing = new Map<number, string>();
  for (const { transfers, decisions } of now) {
    for (const transfer of transfers) {
      const { newEpoch } = transfer;
      const is = nameOf(transfer);
      const others = [...(issued.get(newEpoch) ?? [])].filter(
        (one) => one !== is && !lost.transfers.has(one),
      );
      if ((standing.get(newEpoch) ?? is) !== is || others.length > 0) {
        throw new Error(`H2: epoch ${newEpoch} was issued twice`);
      }
      standing.set(newEpoch, is);
      issued.set(newEpoch, (issued.get(newEpoch) ?? new Set()).add(is));
    }
    const accepted = decisions.filter(({ verdict }) => verdict === 'accepted').map((row) => row.epochAfter);
    if (new Set(accepted).size !== accepted.length) throw new Error('H2: an epoch was accepted twice');
  }
  const gone = new Set(lost.transfers.values());
  for (let epoch = 2; epoch < Math.max(...standing.keys()); epoch += 1) {
    if (!standing.has(epoch) && !gone.has(epoch)) throw new Error('H2: an epoch was left out');
  }
  for (const [at, { case: row }] of now.entries()) {
    if ((row?.epoch ?? 0) < (before[at]?.case?.epoch ?? 0)) throw new Error('H2: an epoch went back');
  }
}

/** H4 and H7: a key has one verdict in all ledgers, for ever, and an acceptance its work item. */
export function checkDecisions(
  now: readonly CaseSnapshot[],
  before: readonly CaseSnapshot[],
  lost: Lost = NOTHING,
): void {
  const verdicts = new Map<string, string>();
  for (const [at, { decisions, work }] of now.entries()) {
    const known = new Map(decisions.map((row) => [idOf(row), row]));
    for (const row of before[at]?.decisions ?? []) {
      if (known.get(idOf(row))?.verdict !== row.verdict) throw new Error('H7: a decision is gone');
    }
    for (const row of decisions) {
      const other = verdicts.get(idOf(row)) ?? row.verdict;
      if (other !== row.verdict && !lost.attempts.has(idOf(row))) {
        throw new Error(`H4: decided twice: ${other} and ${row.verdict}`);
      }
      verdicts.set(idOf(row), row.verdict);
      const mine = work.some((item) => idOf(item) === idOf(row));
      if (row.verdict === 'accepted' && row.taskId !== null && !mine) throw new Error('H7: no work item');
    }
  }
}

/** H6: whatever a sender has closed, its receiver has decided so. `urls`: of the agents, in the order of their ledgers. */
export function checkProofs(
  now: readonly CaseSnapshot[],
  urls: readonly string[],
  lost: Lost = NOTHING,
): void {
  for (const [at, { offers }] of now.entries()) {
    for (const offer of offers.filter(({ closedAt }) => closedAt !== null)) {
      if (lost.decisions.has(lostBy(offer.toAgent, offer))) continue;
      const there = now[urls.indexOf(offer.toAgent)];
      const stored = there?.decisions.find((row) => idOf(row) === idOf(offer))?.verdict;
      const here = offer.state === 'accepted' || offer.state === 'rejected' ? offer.state : 'tombstone';
      if (stored !== here) throw new Error(`H6: ${urls[at]} closed ${here} without proof`);
    }
  }
}

export function idOf({ key }: { readonly key: AcceptanceKey }): string {
  return `${key.sender} ${key.handoffId}:${key.attempt}`;
}

/** The decision on an attempt, at the agent of the ledger that has lost it. */
export function lostBy(agent: string, row: { readonly key: AcceptanceKey }): string {
  return `${agent} ${idOf(row)}`;
}

/** Of one change of owner, and of no other. */
export function nameOf({ newEpoch, toAgent, digest }: Transfer): string {
  return `${newEpoch} ${toAgent} ${digest}`;
}
