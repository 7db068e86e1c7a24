import { problemsOf } from '../../../src/audit/index.js';
import type { CaseRef } from '../../../src/core/index.js';
import type { CaseSnapshot, LedgerStore } from '../../../src/ledger/index.js';
import type { Told } from '../node.js';
import type { EffectTarget } from './effect-target.js';
import { decidedOtherBytes, isPersons, type Side, settledObjections } from './observer.js';
import type { Seat, Watch } from './watch.js';

export interface SeparateVerdict {
  readonly cases: number;
  /** Changes of owner. */
  readonly moved: number;
  /** Cases that nobody took, and that a person owns in the end. */
  readonly escalated: number;
  readonly ended: Readonly<Record<string, number>>;
  /** Effects that the target carried out; tries to act that a ledger refused, and of these for an offer that was out. */
  readonly admitted: number;
  readonly refused: number;
  readonly frozen: number;
  readonly looks: number;
  /** Cases whose offer was changed on the way into another that could be read: they stay in doubt. */
  readonly altered: number;
  readonly violations: readonly string[];
}

type Pair<T> = Readonly<Record<'triage' | 'billing', T>>;

interface Judged {
  readonly urls: Pair<string>;
  readonly ledgers: Pair<LedgerStore>;
  /** Who takes no case. */
  readonly decliner: Seat;
  readonly told: Told;
  readonly target: EffectTarget;
  readonly watch: Watch;
  /** Whether a link has changed bytes. */
  readonly corrupting: boolean;
}

/** What must hold of every case once both ledgers have come to rest. */
export async function judgeBoth(judged: Judged): Promise<SeparateVerdict> {
  const { urls, ledgers, decliner, told, target, watch } = judged;
  const unsettled = new Set(watch.unsettled());
  const violations = [...told.violations, ...target.acts.problems, ...watch.violations];
  const acknowledged = epochsOf(told.accepted);
  const ended: Record<string, number> = {};
  let [moved, escalated, refused, frozen, altered] = [0, 0, 0, 0, 0];
  const refs = await ledgers.triage.listAuditedCases('default');
  for (const ref of refs) {
    const { caseId } = ref;
    const [here, there] = [await ledgers.triage.snapshot(ref), await ledgers.billing.snapshot(ref)];
    // Where two ledgers hold other bytes for the same attempt, no answer of the one is proof for the other.
    if (judged.corrupting && unsettled.has(caseId) && isAltered(here, there)) altered++;
    else {
      if (unsettled.has(caseId)) violations.push(`${caseId}: is not settled`);
      const outside = {
        acts: target.acts.of(caseId),
        acknowledged: acknowledged.get(caseId) ?? [],
        escalates: caseId.startsWith('PERSON'),
        decliner: { agent: decliner.agent, seen: await decliner.ledger.snapshot(ref) },
      };
      const root = { agent: urls.triage, seen: here };
      const peer = { agent: urls.billing, seen: there };
      for (const problem of [
        ...settledObjections(root, peer, outside),
        ...undone(root, peer, outside.acts),
      ]) {
        violations.push(`${caseId}: ${problem}`);
      }
      if ([root, peer].some(isPersons)) escalated++;
    }
    acknowledged.delete(caseId);
    moved += here.transfers.length;
    for (const { audit, offers } of [here, there]) {
      for (const { state } of offers) ended[state] = (ended[state] ?? 0) + 1;
      for (const { type, rule } of audit) {
        if (type !== 'write_refused') continue;
        refused++;
        if (rule === 'effects_frozen') frozen++;
      }
    }
  }
  violations.push(...(await strays(ledgers, new Set(refs.map(nameOf)), target)));
  for (const caseId of acknowledged.keys()) {
    violations.push(`${caseId}: was acknowledged, and its root does not know it`);
  }
  const { looks } = watch;
  const admitted = target.acts.admitted;
  return {
    cases: refs.length,
    moved,
    escalated,
    ended,
    admitted,
    refused,
    frozen,
    looks,
    altered,
    violations,
  };
}

export function isAltered(here: CaseSnapshot, there: CaseSnapshot): boolean {
  return decidedOtherBytes(here, there) || decidedOtherBytes(there, here);
}

/** Whoever owns it in the end has done what an acceptance asks for, once over all owners and once for each. */
function* undone(root: Side, peer: Side, acts: readonly { key: string }[]): Generator<string> {
  const epoch = root.seen.case?.epoch ?? 0;
  const times = (key: string) => acts.filter((act) => act.key === key).length;
  const allWork = [...root.seen.work, ...peer.seen.work];
  if ([root, peer].some(isPersons)) {
    // What its former owner had accepted may have been begun.
    if (times('refund-pay_B') > allWork.length)
      yield `H5: its refund happened ${times('refund-pay_B')} times, and it was accepted ${allWork.length} times`;
    if (allWork.some(({ state }) => state === 'open'))
      yield 'H7: a person owns it, and it is still worked on';
    return;
  }
  if (epoch === 1) {
    if (times('refund-pay_B') > 0) yield 'H1: was never accepted, and its refund happened';
    return;
  }
  const work = allWork.filter((item) => item.epoch === epoch);
  if (work.length !== 1 || work[0]?.state !== 'done')
    yield 'H7: was accepted and is not worked on to its end';
  if (times('refund-pay_B') !== 1) yield `H5: its refund happened ${times('refund-pay_B')} times`;
  if (times(`letter-${epoch}`) !== 1) yield `H5: its letter of epoch ${epoch} was sent otherwise than once`;
}

/** What came under another name than was sent may be refused in the receiver's ledger; it leads to nothing. */
async function strays(
  { billing }: Pair<LedgerStore>,
  known: ReadonlySet<string>,
  target: EffectTarget,
): Promise<string[]> {
  const wrong: string[] = [];
  for (const ref of await billing.listAuditedCases('default')) {
    if (known.has(nameOf(ref))) continue;
    const seen = await billing.snapshot(ref);
    if (seen.case !== null)
      wrong.push(`${ref.caseId}: H1: nobody opened it, and the receiver has accepted it`);
    for (const problem of problemsOf(seen)) wrong.push(`${ref.caseId}: H8: ${problem}`);
  }
  const ids = new Set([...known].map((name) => name.split(' ')[1]));
  for (const caseId of target.acts.cases()) {
    if (!ids.has(caseId)) wrong.push(`${caseId}: H3: an effect of no known case`);
  }
  return wrong;
}

function nameOf({ root, caseId }: CaseRef): string {
  return `${root} ${caseId}`;
}

function epochsOf(accepted: ReadonlySet<string>): Map<string, number[]> {
  const epochs = new Map<string, number[]>();
  for (const [caseId, epoch] of [...accepted].map((said) => said.split(' '))) {
    epochs.set(caseId as string, [...(epochs.get(caseId as string) ?? []), Number(epoch)]);
  }
  return epochs;
}
