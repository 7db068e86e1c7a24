import {
  type AcceptanceKey,
  type CaseRef,
  type Clock,
  ERROR_TABLE,
  type ErrorCode,
  HoldfastError,
  handoffIdOf,
  isHoldfastError,
  type Logger,
  personOwner,
} from '../core/index.js';
import { faultPoint } from '../faults/index.js';
import {
  type Candidate,
  type CandidatePlan,
  type CaseRow,
  isOpen,
  type LedgerStore,
  type OfferRow,
  type PlanStep,
} from '../ledger/index.js';
import type { EscalateInput } from './model.js';

/*
 * An ordered list of candidates, one after another. The next is offered the case only once the ledger holds what closed the offer before:
 * an open one, in doubt too, stops the plan. Any process may make the step; that one of them makes it, and once, the ledger sees to.
 */

export interface CandidatesOptions {
  readonly self: string;
  readonly ledger: LedgerStore;
  readonly clock: Clock;
  readonly logger: Logger;
  escalate(input: EscalateInput): Promise<CaseRow>;
  /** Makes and stores the next attempt, to this agent, as a step of the plan. `claims`: this process goes on with it. */
  offer(next: NextOffer): Promise<OfferRow>;
}

export interface NextOffer {
  readonly plan: CandidatePlan;
  /** The attempt that was closed. */
  readonly before: OfferRow;
  readonly to: string;
  readonly step: (attempt: number) => PlanStep;
  readonly claims: boolean;
}

export interface Candidates {
  /** Makes the next step of the case's plan, if there is one to make now; the offer that it made, or null. */
  advance(ref: CaseRef, claims: boolean): Promise<OfferRow | null>;
  /** The same for every plan of this agent; what was offered is left to whoever claims it. */
  takeUp(tenant: string): Promise<void>;
  /** The plan goes no further than this attempt. */
  end(key: AcceptanceKey, ref: CaseRef, reason: string): Promise<void>;
}

/** Rejections that every other candidate would answer with as well: the case is not what the sender took it for. */
const FOR_ALL: ReadonlySet<string> = new Set<ErrorCode>([
  'case_changed',
  'case_closed',
  'chain_limit',
  'chain_mismatch',
  'duplicate_conflict',
  'epoch_ahead',
  'epoch_stale',
  'not_owner',
]);

/** What is wrong with one candidate, and no other. */
const OF_CANDIDATE: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'peer_error',
  'peer_incompatible',
  'peer_key_mismatch',
  'peer_unknown',
  'peer_unreachable',
  'unauthenticated',
  'url_forbidden',
]);

/** Somebody else was faster, or something has to end first: the next look tells. */
const LATER: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'case_changed',
  'case_closed',
  'case_quarantined',
  'effect_in_flight',
  'epoch_stale',
  'not_owner',
  'offer_decided',
  'offer_open',
  'plan_ended',
]);

const PLANS = 100;

export function createCandidates(options: CandidatesOptions): Candidates {
  const { self, ledger, clock, logger } = options;

  async function advance(ref: CaseRef, claims: boolean): Promise<OfferRow | null> {
    const plan = await ledger.getPlan(ref);
    if (plan === null || plan.state !== 'active' || plan.sender !== self) return null;
    const before = await ledger.getOffer(keyOf(plan));
    if (before === null || isOpen(before)) return null;
    const over = await whyOver(plan, before);
    if (over !== null) {
      await set(plan, plan.candidates, 'ended', over);
      return null;
    }
    faultPoint('C1.before_step');
    if (before.code !== null && FOR_ALL.has(before.code)) {
      await exhaust(plan, plan.candidates, before.code);
      return null;
    }
    return step(plan, before, claims);
  }

  /** What has happened to the case besides the plan. */
  async function whyOver(plan: CandidatePlan, before: OfferRow): Promise<string | null> {
    if (before.state === 'accepted') return 'accepted';
    const row = await ledger.getCase(plan.ref);
    if (row === null || row.status === 'closed') return 'case_closed';
    if (row.owner !== self || row.epoch !== plan.epoch) {
      const { escalateTo } = plan;
      return escalateTo !== null && row.owner === personOwner(escalateTo, self)
        ? 'escalated'
        : 'owner_changed';
    }
    return (await ledger.lastAttempt(before.key)) === plan.attempt ? null : 'replaced';
  }

  async function step(plan: CandidatePlan, before: OfferRow, claims: boolean): Promise<OfferRow | null> {
    let candidates = plan.candidates;
    for (;;) {
      const turn = candidates.findIndex(isLeft);
      const next = candidates[turn];
      if (next === undefined) {
        await exhaust(plan, candidates, 'candidates_exhausted');
        return null;
      }
      const replaced = (change: Partial<Candidate>) =>
        candidates.map((one, index) => (index === turn ? { ...one, ...change } : one));
      try {
        const offer = await options.offer({
          plan,
          before,
          to: next.agent,
          claims,
          step: (attempt) => ({
            from: plan.attempt,
            candidates: replaced({ attempt }),
            escalateTo: plan.escalateTo,
            acceptWithinMs: plan.acceptWithinMs,
          }),
        });
        const { handoffId, attempt } = offer.key;
        logger.info(
          { handoff: handoffId, attempt, to: next.agent },
          'the next candidate is offered the case',
        );
        return offer;
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        const { code } = error;
        if (LATER.has(code)) return null;
        if (!OF_CANDIDATE.has(code)) {
          if (ERROR_TABLE[code].retry === 'same') throw error;
          await exhaust(plan, candidates, code);
          return null;
        }
        // Its turn lasts as long as it would have had to accept.
        if (ERROR_TABLE[code].retry === 'same' && !isLongClosed(before, plan)) return null;
        logger.warn({ case: plan.ref.caseId, to: next.agent, code }, 'a candidate is passed over');
        candidates = replaced({ passed: code });
        const now = await set(plan, candidates, 'active', null);
        if (now?.state !== 'active' || now.attempt !== plan.attempt) return null;
      }
    }
  }

  function isLongClosed({ closedAt }: OfferRow, { acceptWithinMs }: CandidatePlan): boolean {
    return closedAt === null || clock.now().getTime() - Date.parse(closedAt) > acceptWithinMs;
  }

  /** Nobody is left: the person who is named gets the case, or it waits for one. */
  async function exhaust(
    plan: CandidatePlan,
    candidates: readonly Candidate[],
    reason: string,
  ): Promise<void> {
    const { ref, escalateTo } = plan;
    if (escalateTo !== null) {
      faultPoint('C2.before_escalation');
      try {
        await options.escalate({
          key: keyOf(plan),
          person: escalateTo,
          reason: 'no candidate has accepted it',
        });
        faultPoint('C2.after_escalation');
        await set(plan, candidates, 'ended', 'escalated');
        return;
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        if (LATER.has(error.code)) return;
        if (ERROR_TABLE[error.code].retry === 'same') throw error;
        logger.error({ case: ref.caseId, code: error.code, err: error }, 'a case could not be escalated');
      }
    }
    await set(plan, candidates, 'exhausted', reason);
  }

  function set(
    { ref, sender, attempt: from }: CandidatePlan,
    candidates: readonly Candidate[],
    state: CandidatePlan['state'],
    reason: string | null,
  ): Promise<CandidatePlan | null> {
    return ledger.setPlan({ ref, sender, from, candidates, state, reason });
  }

  return {
    advance,
    async takeUp(tenant) {
      for (const { ref } of await ledger.listPlans(tenant, self, PLANS)) {
        try {
          await advance(ref, false);
        } catch (err) {
          const code = isHoldfastError(err) ? err.code : 'internal';
          logger.error({ case: ref.caseId, code, err }, 'the next candidate could not be offered the case');
        }
      }
    },
    async end(key, ref, reason) {
      const plan = await ledger.getPlan(ref);
      if (plan?.state !== 'active' || plan.attempt !== key.attempt) return;
      await set(plan, plan.candidates, 'ended', reason);
    },
  };
}

/** The attempt at which the plan stands. */
export function keyOf({ ref, sender, epoch, attempt }: CandidatePlan): AcceptanceKey {
  const { tenant, root, caseId } = ref;
  return { tenant, root, sender, handoffId: handoffIdOf(caseId, epoch), attempt };
}

function isLeft({ attempt, passed }: Candidate): boolean {
  return attempt === null && passed === null;
}

const MAX_CANDIDATES = 20;

/** The agents of a handover, in order. @throws usage */
export function addresseesOf(to: string | readonly string[]): [string, ...string[]] {
  const [first, ...others] = typeof to === 'string' ? [to] : to;
  const all = new Set([first, ...others]);
  if (first === undefined || all.size !== others.length + 1 || all.size > MAX_CANDIDATES) {
    throw new HoldfastError(
      'usage',
      `A case is offered to 1 to ${MAX_CANDIDATES} agents, each of them once.`,
    );
  }
  return [first, ...others];
}

/** A plan at its first candidate. */
export function planFrom(
  addressees: readonly string[],
  attempt: number,
  plan: Pick<PlanStep, 'escalateTo' | 'acceptWithinMs'>,
): PlanStep {
  const candidates = addressees.map((agent, index) => ({
    agent,
    attempt: index === 0 ? attempt : null,
    passed: null,
  }));
  return { from: null, candidates, ...plan };
}
