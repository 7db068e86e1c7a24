import type { AcceptanceKey } from '../../src/core/index.js';
import type { CaseSnapshot } from '../../src/ledger/index.js';

/* What must hold over all the ledgers of one case, whatever the nodes and the network did. Each throws what does not, with its name. */

/** H2: epochs rise by one at every change of owner, over all ledgers, and none is issued twice. */
export function checkEpochs(now: readonly CaseSnapshot[], before: readonly CaseSnapshot[]): void {
  const owners = new Map<number, string>();
  for (const { transfers, decisions } of now) {
    for (const { newEpoch, toAgent, digest } of transfers) {
      const is = `${toAgent} ${digest}`;
      if ((owners.get(newEpoch) ?? is) !== is) throw new Error(`H2: epoch ${newEpoch} was issued twice`);
      owners.set(newEpoch, is);
    }
    const accepted = decisions.filter(({ verdict }) => verdict === 'accepted').map((row) => row.epochAfter);
    if (new Set(accepted).size !== accepted.length) throw new Error('H2: an epoch was accepted twice');
  }
  const epochs = [...owners.keys()].sort((a, b) => a - b);
  if (epochs.some((epoch, at) => epoch !== at + 2)) throw new Error('H2: an epoch was left out');
  for (const [at, { case: row }] of now.entries()) {
    if ((row?.epoch ?? 0) < (before[at]?.case?.epoch ?? 0)) throw new Error('H2: an epoch went back');
  }
}

/** H4 and H7: a key has one verdict in all ledgers, for ever, and an acceptance its work item. */
export function checkDecisions(now: readonly CaseSnapshot[], before: readonly CaseSnapshot[]): void {
  const verdicts = new Map<string, string>();
  for (const [at, { decisions, work }] of now.entries()) {
    const known = new Map(decisions.map((row) => [idOf(row), row]));
    for (const row of before[at]?.decisions ?? []) {
      if (known.get(idOf(row))?.verdict !== row.verdict) throw new Error('H7: a decision is gone');
    }
    for (const row of decisions) {
      const other = verdicts.get(idOf(row)) ?? row.verdict;
      if (other !== row.verdict) throw new Error(`H4: decided twice: ${other} and ${row.verdict}`);
      verdicts.set(idOf(row), row.verdict);
      const mine = work.some((item) => idOf(item) === idOf(row));
      if (row.verdict === 'accepted' && row.taskId !== null && !mine) throw new Error('H7: no work item');
    }
  }
}

/** H6: whatever a sender has closed, its receiver has decided so. `urls`: of the agents, in the order of their ledgers. */
export function checkProofs(now: readonly CaseSnapshot[], urls: readonly string[]): void {
  for (const [at, { offers }] of now.entries()) {
    for (const offer of offers.filter(({ closedAt }) => closedAt !== null)) {
      const there = now[urls.indexOf(offer.toAgent)];
      const stored = there?.decisions.find((row) => idOf(row) === idOf(offer))?.verdict;
      const here = offer.state === 'accepted' || offer.state === 'rejected' ? offer.state : 'tombstone';
      if (stored !== here) throw new Error(`H6: ${urls[at]} closed ${here} without proof`);
    }
  }
}

function idOf({ key }: { readonly key: AcceptanceKey }): string {
  return `${key.sender} ${key.handoffId}:${key.attempt}`;
}
