import { type AcceptanceKey, type CaseRef, isSameCase, toUtc } from '../../core/index.js';
import {
  asOf,
  type ClaimRow,
  claimIdOf,
  isOpen,
  isUnfinished,
  offerRow,
  type TaskFilter,
  type TaskRow,
} from '../../ledger/index.js';
import type { HandoffKey, LedgerQueries } from '../engine.js';
import { candidateQueriesOf } from './candidates.js';
import { incarnationQueriesOf } from './incarnations.js';
import { attemptKey, refKey } from './keys.js';
import { pendingQueriesOf } from './pending.js';
import { pushQueriesOf } from './push.js';
import type { State } from './state.js';
import { watchQueriesOf } from './watch.js';

/** The same questions as the SQL ones, over the maps. */
export function queriesOf({ incarnation, tables }: State, now: Date): LedgerQueries {
  const { kinds, cases, offers, decisions, work, notes, effects, tasks, audit } = tables;
  const { transfers, holders, claims, quarantines } = tables;
  const quarantined = (ref: CaseRef) => quarantines.get(...refKey(ref)) !== null;
  const alive = (holder: string) => (holders.get(holder)?.until ?? '') > toUtc(now);
  const free = (tenant: string, what: ClaimRow['what'], id: string) => {
    const claim = claims.get(tenant, what, id);
    return claim === null || !alive(claim.holder);
  };
  const attemptsOf = (rows: readonly { readonly key: AcceptanceKey }[], key: HandoffKey) =>
    rows.filter((row) => sameHandoff(row.key, key)).map((row) => row.key.attempt);
  return {
    now,
    incarnation: () => incarnation,
    kind: (tenant, kind) => kinds.get(tenant, kind)?.kind ?? null,
    kinds: (tenant) =>
      kinds
        .where((row) => row.tenant === tenant)
        .map((row) => row.kind)
        .sort((a, b) => (a.kind < b.kind ? -1 : 1)),
    case: (ref) => cases.get(...refKey(ref)),
    cases: (tenant, { status, owner, limit }) =>
      cases
        .where(
          (row) =>
            row.ref.tenant === tenant &&
            (status === undefined || row.status === status) &&
            (owner === undefined || row.owner === owner),
        )
        .reverse()
        .slice(0, limit),
    casesById: (tenant, caseId) =>
      cases.where((row) => row.ref.tenant === tenant && row.ref.caseId === caseId),
    offer: (key) => offers.get(...attemptKey(key)),
    openOffer: (ref) => offers.where((row) => isSameCase(row.ref, ref) && isOpen(row))[0] ?? null,
    offers: (tenant, { from, to, caseId, open, holds, limit }) =>
      offers
        .where(
          (row) =>
            row.key.tenant === tenant &&
            (from === undefined || row.key.sender === from) &&
            (to === undefined || row.toAgent === to) &&
            (caseId === undefined || row.ref.caseId === caseId) &&
            (open === undefined || isOpen(row) === open) &&
            (holds === undefined || row.message.includes(holds)),
        )
        .reverse()
        .slice(0, limit)
        .map(offerRow),
    offersOf: (ref) => offers.where((row) => isSameCase(row.ref, ref)).map(offerRow),
    decision: (key) => decisions.get(...attemptKey(key)),
    decisionsOf: (ref) => decisions.where((row) => isSameCase({ ...row.key, caseId: row.caseId }, ref)),
    decisionsBy: (ref, sender, limit) =>
      decisions
        .where((row) => row.key.sender === sender && isSameCase({ ...row.key, caseId: row.caseId }, ref))
        .reverse()
        .slice(0, limit),
    lastAttempt: (key) => Math.max(0, ...attemptsOf(offers.all(), key), ...attemptsOf(decisions.all(), key)),
    work: (tenant, id) => work.get(tenant, id),
    openWork: (ref) => work.where((row) => isSameCase(row.ref, ref) && row.state === 'open'),
    workItems: (tenant, { owner, state, caseId, limit }) =>
      work
        .where(
          (row) =>
            row.ref.tenant === tenant &&
            (owner === undefined || row.owner === owner) &&
            (state === undefined || row.state === state) &&
            (caseId === undefined || row.ref.caseId === caseId),
        )
        .slice(0, limit),
    workOf: (ref) => work.where((row) => isSameCase(row.ref, ref)),
    notes: (ref) => notes.where((row) => isSameCase(row.ref, ref)),
    effects: (ref) => effects.where((row) => isSameCase(row.ref, ref)),
    transfers: (ref) =>
      transfers.where((row) => isSameCase(row.ref, ref)).sort((a, b) => a.newEpoch - b.newEpoch),
    task: (tenant, id) => tasks.get(tenant, id),
    tasks: (filter) => page(tasks.all(), filter),
    nextSeq: (ref) => (audit.get(...refKey(ref))?.entries.length ?? 0) + 1,
    audit: (ref) => [...(audit.get(...refKey(ref))?.entries ?? [])],
    auditedCases: (tenant) =>
      audit
        .where((row) => row.ref.tenant === tenant)
        .map((row) => row.ref)
        .sort((a, b) => compare(a.root, b.root) || compare(a.caseId, b.caseId)),
    auditHead: (ref) => {
      const last = audit.get(...refKey(ref))?.entries.at(-1);
      return last === undefined ? null : { seq: last.seq, hash: last.hash };
    },
    auditHash: (ref, seq) => audit.get(...refKey(ref))?.entries[seq - 1]?.hash ?? null,
    alive,
    freeOffers: ({ tenant, agent, key, limit }) =>
      offers
        .where(
          (row) =>
            row.key.tenant === tenant &&
            row.key.sender === agent &&
            (key === undefined || claimIdOf(row.key) === claimIdOf(key)) &&
            isUnfinished(row) &&
            !quarantined(row.ref) &&
            free(tenant, 'offer', claimIdOf(row.key)),
        )
        .slice(0, limit),
    freeWork: ({ tenant, agent, workId, limit }) =>
      work
        .where(
          (row) =>
            row.ref.tenant === tenant &&
            row.owner === agent &&
            (workId === undefined || row.id === workId) &&
            row.state === 'open' &&
            !quarantined(row.ref) &&
            free(tenant, 'work', row.id),
        )
        .slice(0, limit),
    ...pendingQueriesOf(
      tables,
      ({ ref, holder }) => (holder === null || !alive(holder)) && !quarantined(ref),
      quarantined,
      now,
    ),
    ...pushQueriesOf(tables, now, alive),
    ...watchQueriesOf(tables, now),
    ...candidateQueriesOf(tables, quarantined),
    ...incarnationQueriesOf(tables, now),
    quarantined,
    quarantines: (tenant) => quarantines.where((row) => row.ref.tenant === tenant),
    doubtfulOffers: (tenant) =>
      offers
        .where((row) => row.key.tenant === tenant && row.state === 'in_doubt' && !quarantined(row.ref))
        .map(offerRow),
    unknownEffects: (tenant, limit) =>
      effects
        .where((row) => row.ref.tenant === tenant)
        .map((row) => asOf(row, now))
        .filter((row) => row.state === 'unknown')
        .sort((a, b) => compare(a.settledAt ?? a.limitAt, b.settledAt ?? b.limitAt))
        .slice(0, limit),
  };
}

function page(rows: readonly TaskRow[], filter: TaskFilter): { tasks: TaskRow[]; total: number } {
  const since = filter.since === undefined ? '' : toUtc(new Date(filter.since));
  const { after } = filter;
  const matching = rows
    .filter(
      (row) =>
        row.tenant === filter.tenant &&
        row.peer === filter.peer &&
        (filter.contextId === undefined || row.contextId === filter.contextId) &&
        (filter.state === undefined || row.state === filter.state) &&
        row.statusAt >= since,
    )
    .sort(newestFirst);
  const tasks = after === undefined ? matching : matching.filter((row) => newestFirst(after, row) < 0);
  return { tasks: tasks.slice(0, filter.limit), total: matching.length };
}

function newestFirst(a: { statusAt: string; id: string }, b: { statusAt: string; id: string }): number {
  return compare(b.statusAt, a.statusAt) || compare(a.id, b.id);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function sameHandoff(a: HandoffKey, b: HandoffKey): boolean {
  return a.tenant === b.tenant && a.root === b.root && a.sender === b.sender && a.handoffId === b.handoffId;
}
