import { toUtc } from '../core/index.js';
import type {
  AttentionItem,
  AwaitedPeer,
  CandidatePlan,
  EffectRow,
  PendingOffer,
  Quarantine,
  SentTask,
} from '../ledger/index.js';

/* What only a person can settle, put together from the rows that say so. */

/** For how long an attention item waits for a peer that may only be restarted, milliseconds. */
const PATIENCE_MS = 60_000;

/** Peers that wait since this are shown, and offers whose check has gone on since then. */
export function patienceEnds(now: Date): string {
  return toUtc(new Date(now.getTime() - PATIENCE_MS));
}

/** Oldest first. */
export function attentionOf(
  found: {
    readonly effects: readonly EffectRow[];
    readonly quarantines: readonly Quarantine[];
    readonly doubts: readonly AttentionItem[];
    readonly questions: readonly SentTask[];
    readonly unanswered: readonly AwaitedPeer[];
    readonly plans: readonly CandidatePlan[];
    readonly decisions: readonly PendingOffer[];
  },
  limit: number | undefined,
): AttentionItem[] {
  return [
    ...found.effects.map(ofEffect),
    ...found.quarantines.map(ofQuarantine),
    ...found.doubts,
    ...found.questions.flatMap(ofQuestion),
    ...found.plans.map(ofPlan),
    ...found.decisions.map(ofPending),
    ...found.unanswered.map(ofAwaited),
  ]
    .sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0))
    .slice(0, limit);
}

function ofEffect(effect: EffectRow): AttentionItem {
  const { ref, settledAt, limitAt, key, operation, amount, owner, epoch, startedAt } = effect;
  const data = { key, operation, amount, owner, epoch, startedAt };
  return { what: 'effect_unknown', ref, since: settledAt ?? limitAt, data };
}

function ofQuarantine({ ref, at, reason, witnessed, found }: Quarantine): AttentionItem {
  return { what: 'case_quarantined', ref, since: at, data: { reason, witnessed, found } };
}

function ofQuestion({ key, ref, at, peer, question }: SentTask): AttentionItem[] {
  if (question === null) return [];
  const { handoffId, attempt, sender: owner } = key;
  const data = { handoffId, attempt, owner, peer, n: question.n, question: question.text };
  return [{ what: 'question_open', ref, since: at, data }];
}

function ofPlan({
  ref,
  at,
  attempt,
  epoch,
  candidates,
  reason,
  sender: owner,
}: CandidatePlan): AttentionItem {
  return {
    what: 'candidates_exhausted',
    ref,
    since: at,
    data: { attempt, epoch, candidates, reason, owner },
  };
}

function ofPending({
  key,
  ref,
  receivedAt,
  toAgent,
  contract,
  acceptBy,
  state,
}: PendingOffer): AttentionItem {
  const { handoffId, attempt, sender } = key;
  const data = { handoffId, attempt, sender, toAgent, contract, acceptBy, state };
  return { what: 'decision_waiting', ref, since: receivedAt, data };
}

function ofAwaited({ agent, peer, incarnation, since }: AwaitedPeer): AttentionItem {
  return { what: 'peer_unanswered', ref: null, since, data: { agent, peer, incarnation } };
}
