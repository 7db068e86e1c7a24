import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import { personOwner } from '../../src/core/index.js';
import type { CaseSnapshot, LedgerStore } from '../../src/ledger/index.js';
import type { Told } from './node.js';
import type { Target } from './target.js';

export interface Verdict {
  readonly cases: number;
  readonly accepted: number;
  /** Cases that no candidate took and that are with the person named for it. */
  readonly escalated: number;
  readonly effects: number;
  readonly violations: readonly string[];
}

export interface Agents {
  readonly triage: string;
  readonly billing: string;
  /** The candidate after billing, where there is one. */
  readonly second: string | null;
}

/** What must hold of every case, whatever died when. */
export async function judge(
  ledger: LedgerStore,
  agents: Agents,
  told: Told,
  target: Target,
): Promise<Verdict> {
  const refs = await ledger.listAuditedCases('default');
  const acknowledged = new Set(told.accepted);
  let [accepted, escalated] = [0, 0];
  for (const ref of refs) {
    const { caseId } = ref;
    const snapshot = await ledger.snapshot(ref);
    const calls = target.calls.get(`${caseId} refund-pay_B`) ?? 0;
    const problems = [...problemsOf(caseId, snapshot, agents, calls)];
    if (isEscalated(caseId)) escalated++;
    else if (snapshot.case?.owner === takerOf(caseId, agents)) accepted++;
    if (acknowledged.delete(caseId) && !isTaken(caseId, snapshot, agents)) {
      problems.push('was acknowledged and is lost');
    }
    for (const problem of problems) told.violations.push(`${caseId}: ${problem}`);
  }
  for (const caseId of acknowledged)
    told.violations.push(`${caseId}: was acknowledged and is not in the ledger`);
  const known = new Set(refs.map(({ caseId }) => caseId));
  for (const key of target.calls.keys()) {
    if (!known.has(key.split(' ')[0] ?? '')) told.violations.push(`${key}: an effect of no known case`);
  }
  const effects = target.calls.size;
  return { cases: refs.length, accepted, escalated, effects, violations: told.violations };
}

/** What a case is called says who is to have it in the end. */
const isEscalated = (caseId: string) => caseId.startsWith('PERSON');
const isPassedOn = (caseId: string) => caseId.startsWith('NEXT');
const takerOf = (caseId: string, { billing, second }: Agents) => (isPassedOn(caseId) ? second : billing);

function isTaken(caseId: string, { case: row }: CaseSnapshot, agents: Agents): boolean {
  return !isEscalated(caseId) && row?.owner === takerOf(caseId, agents);
}

function* problemsOf(
  caseId: string,
  snapshot: CaseSnapshot,
  agents: Agents,
  calls: number,
): Generator<string> {
  const { case: row, work, effects, audit } = snapshot;
  const acceptances = snapshot.decisions.filter(({ verdict }) => verdict === 'accepted');
  if (!row) yield 'has audit entries and is not in the ledger';
  else if (isTaken(caseId, snapshot, agents)) {
    if (row.epoch !== 2 || acceptances.length !== 1 || work.length !== 1)
      yield 'was not accepted exactly once';
    if (work[0]?.state !== 'done') yield 'was accepted and is not worked on to its end';
    if (effects.length !== 1 || effects[0]?.state !== 'done') yield 'its effect is not known to be done';
    if (calls !== 1) yield `its effect reached the target ${calls} times`;
  } else {
    const [owner, epoch] = isEscalated(caseId) ? [personOwner('ann', agents.triage), 2] : [agents.triage, 1];
    if (row.owner !== owner || row.epoch !== epoch || acceptances.length > 0 || work.length > 0) {
      yield isEscalated(caseId)
        ? 'was taken by nobody and is not whole with its person'
        : 'is neither accepted nor whole with its sender';
    }
    if (effects.length > 0 || calls > 0) yield 'was not accepted and has an effect';
  }
  yield* problemsOnTheWay(caseId, snapshot, agents);
  const chain = verifyChain(audit);
  if (!chain.ok) yield `audit: ${chain.problem} at ${chain.seq}`;
  for (const difference of compareWithLedger(replay(audit), snapshot)) yield `replay: ${difference}`;
}

/** What was stored undecided, and lists of candidates: none is left behind, and each was gone through as it had to be. */
function* problemsOnTheWay(caseId: string, snapshot: CaseSnapshot, agents: Agents): Generator<string> {
  const { pending, plan, audit, offers } = snapshot;
  if (pending.some(({ state }) => state !== 'decided')) yield 'an offer of it is stored undecided';
  const accepted = audit.filter(({ type }) => type === 'handoff_accepted');
  if (caseId.startsWith('ASK') && accepted.length > 0) {
    const answered = pending.flatMap((one) => one.clarifications).filter(({ answer }) => answer !== null);
    if (answered.length !== 1) yield `was asked about, and answered ${answered.length} times`;
  }
  if (caseId.startsWith('LATER') && accepted.length > 0) {
    const by = accepted[0]?.data?.decidedBy;
    if (by !== personOwner('bob', agents.billing)) yield `was left to a person, and accepted by ${by}`;
  }
  const moves = audit.filter(({ type }) => type === 'owner_changed').length;
  if (moves !== (isEscalated(caseId) ? 1 : 0)) yield `was given to a person ${moves} times`;
  if (!isEscalated(caseId) && !isPassedOn(caseId)) return;
  const ended = isEscalated(caseId) ? 'escalated' : 'accepted';
  if (plan?.state !== 'ended' || plan.reason !== ended) yield `its plan is ${plan?.state} ${plan?.reason}`;
  // Each in its turn: the second once billing had rejected it, and nobody after the second.
  const steps = offers.map(
    ({ toAgent, state }) => `${toAgent === agents.second ? 'second' : 'billing'} ${state}`,
  );
  const last = isEscalated(caseId) ? 'second rejected' : 'second accepted';
  const turns = steps.slice(0, -1);
  if (steps.at(-1) !== last || turns.length === 0 || turns.some((step) => step !== 'billing rejected')) {
    yield `its candidates were asked out of turn: ${steps.join(', ')}`;
  }
}
