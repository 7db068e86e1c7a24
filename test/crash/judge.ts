import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import type { CaseSnapshot, LedgerStore } from '../../src/ledger/index.js';
import type { Told } from './node.js';
import type { Target } from './target.js';

export interface Verdict {
  readonly cases: number;
  readonly accepted: number;
  readonly effects: number;
  readonly violations: readonly string[];
}

interface Agents {
  readonly triage: string;
  readonly billing: string;
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
  let accepted = 0;
  for (const ref of refs) {
    const snapshot = await ledger.snapshot(ref);
    const calls = target.calls.get(`${ref.caseId} refund-pay_B`) ?? 0;
    const problems = [...problemsOf(snapshot, agents, calls)];
    if (snapshot.case?.owner === agents.billing) accepted++;
    else if (acknowledged.has(ref.caseId)) problems.push('was acknowledged and is lost');
    acknowledged.delete(ref.caseId);
    for (const problem of problems) told.violations.push(`${ref.caseId}: ${problem}`);
  }
  for (const caseId of acknowledged)
    told.violations.push(`${caseId}: was acknowledged and is not in the ledger`);
  const known = new Set(refs.map(({ caseId }) => caseId));
  for (const key of target.calls.keys()) {
    if (!known.has(key.split(' ')[0] ?? '')) told.violations.push(`${key}: an effect of no known case`);
  }
  return { cases: refs.length, accepted, effects: target.calls.size, violations: told.violations };
}

function* problemsOf(snapshot: CaseSnapshot, agents: Agents, calls: number): Generator<string> {
  const { case: row, decisions, work, effects, audit } = snapshot;
  const acceptances = decisions.filter(({ verdict }) => verdict === 'accepted');
  if (!row) yield 'has audit entries and is not in the ledger';
  else if (row.owner === agents.billing) {
    if (row.epoch !== 2 || acceptances.length !== 1 || work.length !== 1)
      yield 'was not accepted exactly once';
    if (work[0]?.state !== 'done') yield 'was accepted and is not worked on to its end';
    if (effects.length !== 1 || effects[0]?.state !== 'done') yield 'its effect is not known to be done';
    if (calls !== 1) yield `its effect reached the target ${calls} times`;
  } else {
    if (row.owner !== agents.triage || row.epoch !== 1 || acceptances.length > 0 || work.length > 0) {
      yield 'is neither accepted nor whole with its sender';
    }
    if (effects.length > 0 || calls > 0) yield 'was not accepted and has an effect';
  }
  const chain = verifyChain(audit);
  if (!chain.ok) yield `audit: ${chain.problem} at ${chain.seq}`;
  for (const difference of compareWithLedger(replay(audit), snapshot)) yield `replay: ${difference}`;
}
