import { HoldfastError, toUtc } from '../../core/index.js';
import type { CandidatePlan, PlanStep, SetPlanCommand } from '../candidates.js';
import type { OwnerWrite } from '../commands.js';
import type { AuditFact } from '../model.js';
import { atEpoch } from './facts.js';
import type { Change, LedgerView, Rule } from './ruling.js';

/*
 * An ordered list of candidates. A step is part of the transaction that makes the next attempt, so that a crash neither skips a candidate
 * nor makes two attempts of one step: the attempt's number, the one open offer of a case and the plan's own place all stand against it.
 */

/** The plan after the step, or why it cannot be made. */
export function stepped(
  view: LedgerView,
  { ref, writer, epoch }: OwnerWrite,
  attempt: number,
  step: PlanStep,
): CandidatePlan | 'plan_ended' {
  const { candidates, escalateTo, acceptWithinMs, from } = step;
  if (candidates.filter((one) => one.attempt === attempt).length !== 1) {
    throw new HoldfastError('usage', 'Each attempt of a plan is one of its candidates.');
  }
  if (from !== null) {
    const plan = view.plan(ref);
    const stands =
      plan?.state === 'active' && plan.attempt === from && plan.epoch === epoch && plan.sender === writer;
    if (!stands) return 'plan_ended';
  }
  return {
    ref,
    sender: writer,
    epoch,
    attempt,
    candidates,
    escalateTo,
    acceptWithinMs,
    state: 'active',
    reason: null,
    at: toUtc(view.now),
  };
}

/** What stands in the audit of a plan; it is of the attempt whose entry it is in. */
export function planData({ candidates, escalateTo, state, reason }: CandidatePlan) {
  return { candidates, escalateTo, state, reason };
}

/** Idempotent: a plan that is elsewhere by now stays as it is, and is returned. */
export const setPlan: Rule<SetPlanCommand, CandidatePlan | null> = (view, command) => {
  const { ref, sender, from, candidates, state, reason } = command;
  const plan = view.plan(ref);
  if (plan === null || plan.state !== 'active' || plan.attempt !== from || plan.sender !== sender) {
    return { changes: [], audit: null, result: plan };
  }
  const row: CandidatePlan = { ...plan, candidates, state, reason, at: toUtc(view.now) };
  const change: Change = { do: 'set_plan', row };
  const fact: AuditFact = {
    type: 'plan_changed',
    actor: sender,
    attempt: plan.attempt,
    ...atEpoch(plan.epoch),
    ...(reason === null ? {} : { rule: reason }),
    data: { plan: planData(row) },
  };
  return { changes: [change], audit: { ref, facts: [fact] }, result: row };
};
