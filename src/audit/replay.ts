import type { Money } from '../core/index.js';
import type { AuditEntry, AuditType, EffectState, OfferState, WorkState } from '../ledger/index.js';
import { answer, planOf, progress, type ReplayedPlan, type ReplayedSentTask } from './candidates.js';
import { attempt, attemptId, digest, needed, strings, text, whole } from './entries.js';
import type {
  ReplayedCase,
  ReplayedDecision,
  ReplayedEffect,
  ReplayedNote,
  ReplayedOffer,
  ReplayedOwnership,
  ReplayedPending,
  ReplayedTransfer,
  ReplayedWork,
} from './replayed.js';

interface Draft {
  case: ReplayedOwnership | null;
  readonly offers: Map<string, ReplayedOffer>;
  readonly decisions: Map<string, ReplayedDecision>;
  readonly pending: Map<string, ReplayedPending>;
  readonly work: Map<string, ReplayedWork>;
  readonly effects: Map<string, ReplayedEffect>;
  readonly notes: Map<string, ReplayedNote>;
  readonly transfers: Map<string, ReplayedTransfer>;
  plan: ReplayedPlan | null;
  readonly sentTasks: Map<string, ReplayedSentTask>;
}

/**
 * Rebuilds the case from its entries alone; verify the chain first.
 * @throws audit_broken where an entry does not carry what its type needs, or follows from nothing before it
 */
export function replay(entries: readonly AuditEntry[]): ReplayedCase {
  const draft: Draft = {
    case: null,
    offers: new Map(),
    decisions: new Map(),
    pending: new Map(),
    work: new Map(),
    effects: new Map(),
    notes: new Map(),
    transfers: new Map(),
    plan: null,
    sentTasks: new Map(),
  };
  for (const entry of entries) STEPS[entry.type]?.(draft, entry);
  return draft;
}

const TOMBSTONE = { verdict: 'tombstone', code: 'withdrawn', digest: null } as const;

type Step = (draft: Draft, entry: AuditEntry) => void;

/** Refusals, reports and repeated deliveries change nothing: they have no step. */
const STEPS: Partial<Record<AuditType, Step>> = {
  case_opened: (draft, entry) => openCase(draft, entry),
  case_imported: (draft, entry) => openCase(draft, entry),
  case_closed(draft, entry) {
    draft.case = { ...needed(draft.case, entry), status: 'closed' };
  },
  offer_intended(draft, entry) {
    draft.offers.set(attempt(entry), {
      state: 'intended',
      code: null,
      digest: digest(entry),
      toAgent: text(entry, 'toAgent'),
      epoch: needed(entry.epochBefore, entry),
      receipt: null,
    });
    if (entry.data?.plan !== undefined) draft.plan = planOf(entry);
  },
  plan_changed(draft, entry) {
    draft.plan = planOf(entry);
  },
  offer_progressed: (draft, entry) => progress(draft, entry),
  answer_prepared: (draft, entry) => answer(draft, entry),
  offer_offered: (draft, entry) => setOffer(draft, entry, { state: 'offered' }),
  offer_in_doubt: (draft, entry) => setOffer(draft, entry, { state: 'in_doubt' }),
  offer_closed(draft, entry) {
    const state = text(entry, 'state') as OfferState;
    if (state === 'rejected') {
      const code = text(entry, 'reason');
      setOffer(draft, entry, { state, code });
      decide(draft, entry, { verdict: 'rejected', code, taskId: taskOf(entry) });
      return;
    }
    setOffer(draft, entry, { state });
    decide(draft, entry, { ...TOMBSTONE, taskId: taskOf(entry) });
  },
  offer_received(draft, entry) {
    draft.pending.set(attempt(entry), {
      state: 'deciding',
      digest: digest(entry),
      toAgent: entry.actor,
      contract: text(entry, 'contract'),
      taskId: text(entry, 'taskId'),
      questions: [],
      answers: [],
    });
  },
  question_asked: (draft, entry) =>
    setPending(draft, entry, ({ questions }) => ({
      state: 'asked',
      questions: [...questions, text(entry, 'question')],
    })),
  question_answered: (draft, entry) =>
    setPending(draft, entry, ({ answers }) => ({ state: 'deciding', answers: [...answers, digest(entry)] })),
  decision_awaited: (draft, entry) => setPending(draft, entry, () => ({ state: 'waiting' })),
  handoff_accepted(draft, entry) {
    const { owner, epoch } = moveCase(draft, entry, text(entry, 'contract'));
    if (draft.offers.has(attempt(entry))) setOffer(draft, entry, { state: 'accepted' });
    decide(draft, entry, { verdict: 'accepted', code: null, taskId: text(entry, 'taskId') });
    supersede(draft, entry);
    if (entry.data?.receiptDigest !== undefined) keepTransfer(draft, entry, entry.actor);
    draft.work.set(text(entry, 'workId'), {
      state: 'open',
      owner,
      epoch,
      envelope: digest(entry),
      result: null,
    });
  },
  handoff_rejected(draft, entry) {
    const code = needed(entry.rule, entry);
    if (draft.offers.has(attempt(entry))) setOffer(draft, entry, { state: 'rejected', code });
    decide(draft, entry, { verdict: 'rejected', code, taskId: text(entry, 'taskId') });
  },
  handoff_withdrawn(draft, entry) {
    if (draft.offers.has(attempt(entry))) setOffer(draft, entry, { state: 'withdrawn' });
    decide(draft, entry, { ...TOMBSTONE, taskId: taskOf(entry) });
  },
  handoff_released(draft, entry) {
    moveCase(draft, entry, text(entry, 'contract'));
    setOffer(draft, entry, { state: 'accepted', receipt: text(entry, 'receiptDigest') });
    decide(draft, entry, { verdict: 'accepted', code: null, taskId: null });
    supersede(draft, entry);
    keepTransfer(draft, entry, entry.actor);
  },
  transfer_learned(draft, entry) {
    const contract = entry.data?.inside === true ? (draft.case?.contract ?? null) : null;
    if (entry.data?.moves === true) moveCase(draft, entry, contract);
    if (entry.data?.superseded !== undefined) supersede(draft, entry);
    keepTransfer(draft, entry, text(entry, 'from'));
  },
  /** What was lost has left no entry: the case goes on from those before, or begins here. */
  case_recovered(draft, entry) {
    const owner = text(entry, 'to');
    const epoch = needed(entry.epochAfter, entry);
    if (entry.data?.kind !== undefined) openCase(draft, entry, owner);
    else {
      const before = needed(draft.case, entry);
      const bounds = entry.data?.bounds === undefined ? before.bounds : text(entry, 'bounds');
      draft.case = { ...before, owner, epoch, bounds };
    }
    supersede(draft, entry);
  },
  owner_changed(draft, entry) {
    const epoch = needed(entry.epochAfter, entry);
    const owner = text(entry, 'to');
    draft.case = { ...needed(draft.case, entry), owner, epoch };
    supersede(draft, entry);
    if (entry.data?.receiptDigest !== undefined) keepTransfer(draft, entry, text(entry, 'from'), owner);
  },
  receipt_verified: (draft, entry) => setOffer(draft, entry, { receipt: text(entry, 'receiptDigest') }),
  work_settled(draft, entry) {
    const id = text(entry, 'workId');
    draft.work.set(id, {
      ...needed(draft.work.get(id), entry),
      state: text(entry, 'state') as WorkState,
      result: entry.digest ?? null,
    });
  },
  note_added(draft, entry) {
    draft.notes.set(text(entry, 'noteId'), {
      writer: entry.actor,
      epoch: needed(entry.epochBefore, entry),
      digest: digest(entry),
    });
  },
  effect_inherited(draft, entry) {
    draft.effects.set(text(entry, 'key'), {
      state: text(entry, 'state') as EffectState,
      operation: text(entry, 'operation'),
      amount: (entry.data?.amount ?? null) as Money | null,
      owner: text(entry, 'owner'),
      epoch: whole(entry, 'epoch'),
    });
  },
  effect_started(draft, entry) {
    draft.effects.set(text(entry, 'key'), {
      state: 'started',
      operation: text(entry, 'operation'),
      amount: (entry.data?.amount ?? null) as Money | null,
      owner: entry.actor,
      epoch: needed(entry.epochBefore, entry),
    });
  },
  effect_settled(draft, entry) {
    const key = text(entry, 'key');
    const effect = needed(draft.effects.get(key), entry);
    draft.effects.set(key, { ...effect, state: text(entry, 'state') as EffectState });
  },
};

function openCase(draft: Draft, entry: AuditEntry, owner = text(entry, 'owner')): void {
  draft.case = {
    kind: text(entry, 'kind'),
    status: 'open',
    owner,
    epoch: needed(entry.epochAfter, entry),
    contract: null,
    bounds: text(entry, 'bounds'),
  };
}

function moveCase(draft: Draft, entry: AuditEntry, contract: string | null): ReplayedOwnership {
  draft.case = {
    ...needed(draft.case, entry),
    owner: text(entry, 'toAgent'),
    epoch: needed(entry.epochAfter, entry),
    contract,
    bounds: text(entry, 'bounds'),
  };
  return draft.case;
}

function supersede(draft: Draft, entry: AuditEntry): void {
  for (const id of strings(entry, 'superseded')) {
    draft.work.set(id, { ...needed(draft.work.get(id), entry), state: 'superseded' });
  }
}

function keepTransfer(draft: Draft, entry: AuditEntry, from: string, toAgent = text(entry, 'toAgent')): void {
  draft.transfers.set(String(needed(entry.epochAfter, entry)), {
    attempt: attemptId(from, needed(entry.handoffId, entry), needed(entry.attempt, entry)),
    toAgent,
    digest: digest(entry),
    receipt: text(entry, 'receiptDigest'),
  });
}

function setOffer(draft: Draft, entry: AuditEntry, to: Partial<ReplayedOffer>): void {
  const id = attempt(entry);
  draft.offers.set(id, { ...needed(draft.offers.get(id), entry), ...to });
}

function setPending(
  draft: Draft,
  entry: AuditEntry,
  change: (before: ReplayedPending) => Partial<ReplayedPending>,
): void {
  const id = attempt(entry);
  const before = needed(draft.pending.get(id), entry);
  draft.pending.set(id, { ...before, ...change(before) });
}

/** A tombstone has a task where the offer was stored. */
function taskOf(entry: AuditEntry): string | null {
  return entry.data?.taskId === undefined ? null : text(entry, 'taskId');
}

function decide(
  draft: Draft,
  entry: AuditEntry,
  decision: Omit<ReplayedDecision, 'digest' | 'epochBefore' | 'epochAfter' | 'answer'> & { digest?: null },
): void {
  const { epochBefore = null, epochAfter = null } = entry;
  if (draft.pending.has(attempt(entry))) setPending(draft, entry, () => ({ state: 'decided' }));
  draft.decisions.set(attempt(entry), {
    ...decision,
    digest: decision.digest === null ? null : digest(entry),
    epochBefore,
    epochAfter,
    answer: text(entry, 'answer'),
  });
}
