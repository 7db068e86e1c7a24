import { type CaseRef, toUtc } from '../../core/index.js';
import { asOf } from '../../ledger/index.js';
import { attentionOf, patienceEnds } from '../attention.js';
import { doubtOf } from '../doubts.js';
import type { LedgerReads, ReadName } from '../engine.js';
import { auditTable } from './audit.js';
import { candidateTable } from './candidates.js';
import { caseTable } from './cases.js';
import type { Connections } from './connection.js';
import { decisionTable } from './decisions.js';
import { effectTable } from './effects.js';
import { isRolledBack } from './errors.js';
import { incarnationTable } from './incarnations.js';
import type { Ask } from './keys.js';
import { kindTable } from './kinds.js';
import { noteTable } from './notes.js';
import { offerTable } from './offers.js';
import { pendingTable } from './pending.js';
import { pushTable } from './push.js';
import { quarantineTable } from './quarantines.js';
import { ofAttempt } from './scope.js';
import type { Slice } from './slice.js';
import type { Slices } from './slices.js';
import { snapshotOf } from './snapshot.js';
import { taskTable } from './tasks.js';
import { transferTable } from './transfers.js';
import { watchTable } from './watch.js';
import { workTable } from './work.js';

type Questions = {
  readonly [Q in ReadName]: (...args: Parameters<LedgerReads[Q]>) => Promise<ReturnType<LedgerReads[Q]>>;
};

const INCARNATION = {
  name: 'incarnation',
  text: "SELECT value FROM holdfast.meta WHERE name = 'incarnation'",
};

/**
 * Answers what the port asks, always from the primary. What a rule may read too is read as a slice: questions that wait at one
 * moment share a statement, and the next write to the case has it at hand.
 */
export function questionsOf(
  connections: Connections,
  slices: Slices,
  clock: { of(slice: Slice): Date; readonly given: () => Date | undefined },
): Questions {
  const ask: Ask = (statement, values) =>
    reading(() => connections.use((session) => session.query(statement, values)));
  const incarnation = async () => (await ask<{ value: string }>(INCARNATION))[0]?.value ?? '';
  const ofCase = async (ref: CaseRef) => {
    const slice = await slices.load({ tenant: ref.tenant, ref });
    return slice.queries(clock.of(slice));
  };
  const ofKey = async (key: Parameters<LedgerReads['offer']>[0]) => {
    const slice = await slices.load(ofAttempt(key));
    return slice.queries(clock.of(slice));
  };
  const [audit, cases, kinds] = [auditTable(ask), caseTable(ask), kindTable(ask)];
  const [decisions, effects, quarantines] = [decisionTable(ask), effectTable(ask), quarantineTable(ask)];
  const [notes, offers, tasks, work] = [noteTable(ask), offerTable(ask), taskTable(ask), workTable(ask)];
  const pending = pendingTable(ask);
  const [pushes, watches, candidates] = [pushTable(ask), watchTable(ask), candidateTable(ask)];
  const incarnations = incarnationTable(ask);
  const givenText = () => {
    const given = clock.given();
    return given === undefined ? null : toUtc(given);
  };
  return {
    incarnation,
    kind: async (tenant, kind) => {
      const slice = await slices.load({ tenant, kind });
      return slice.queries(clock.of(slice)).kind(tenant, kind);
    },
    kinds: kinds.list,
    case: async (ref) => (await ofCase(ref)).case(ref),
    cases: cases.list,
    casesById: cases.byId,
    snapshot: (ref) => snapshotOf(ask, ref, clock.given()),
    offer: async (key) => (await ofKey(key)).offer(key),
    offers: offers.list,
    decision: async (key) => (await ofKey(key)).decision(key),
    offerStanding: async (key, ref, kind) => {
      const { tenant } = ref;
      const [minted, slice] = await Promise.all([incarnation(), slices.load({ tenant, ref, key, kind })]);
      const queries = slice.queries(clock.of(slice));
      return {
        incarnation: minted,
        decision: queries.decision(key),
        pending: queries.pending(key),
        case: queries.case(ref),
        kind: queries.kind(tenant, kind),
      };
    },
    pending: async (key) => (await ofKey(key)).pending(key),
    pendingOf: pending.ofTask,
    pendings: pending.list,
    decisionsBy: decisions.by,
    lastAttempt: offers.lastAttempt,
    work: work.get,
    workItems: work.list,
    notes: notes.list,
    transfers: transferTable(ask).list,
    currentEffects: async (ref) => {
      const queries = await ofCase(ref);
      return queries.effects(ref).map((effect) => asOf(effect, queries.now));
    },
    task: async (tenant, id) => {
      const slice = await slices.load({ tenant, taskId: id });
      return slice.queries(clock.of(slice)).task(tenant, id);
    },
    tasks: tasks.list,
    audit: audit.list,
    auditedCases: audit.cases,
    auditHead: audit.head,
    auditHash: audit.hash,
    alive: async (holder) => {
      const slice = await slices.load({ tenant: '', holder });
      return slice.queries(clock.of(slice)).alive(holder);
    },
    pushes: pushes.ofTask,
    notifications: pushes.list,
    notification: pushes.one,
    notificationCounts: pushes.counts,
    watch: (watchId) => {
      const given = clock.given();
      return watches.get(watchId, given === undefined ? undefined : toUtc(given));
    },
    heard: watches.heard,
    plan: candidates.plan,
    plans: candidates.plans,
    sentTask: candidates.task,
    sentTasksBy: candidates.tasksBy,
    quarantines: quarantines.list,
    incarnationOf: incarnations.of,
    awaited: incarnations.awaited,
    leasesOf: (agent) => incarnations.leases(agent, givenText()),
    receipts: incarnations.receipts,
    attention: async (tenant, limit) => {
      const doubtful = await offers.doubtful(tenant);
      const doubts = doubtful.map(async (offer) =>
        doubtOf(offer, (await ofCase(offer.ref)).case(offer.ref), await audit.list(offer.ref)),
      );
      return attentionOf(
        {
          effects: await effects.unknown(tenant, clock.given(), limit),
          quarantines: await quarantines.list(tenant),
          doubts: await Promise.all(doubts),
          questions: await candidates.asked(tenant, limit),
          plans: await candidates.exhausted(tenant, limit),
          decisions: await pending.awaited(tenant, clock.given() ?? new Date(), limit),
          unanswered: await incarnations.unanswered(patienceEnds(clock.given() ?? new Date())),
        },
        limit,
      );
    },
  };
}

/** Once more where the connection broke: reading twice does nothing. */
export async function reading<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isRolledBack(error)) throw error;
    return read();
  }
}
