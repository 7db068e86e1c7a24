import { type ChainHead, chain } from '../../audit/index.js';
import type { Change, Ruling } from '../../ledger/index.js';
import { ofPlan, ofSentTask } from '../rows/candidates.js';
import { ofCase } from '../rows/cases.js';
import { ofDecision } from '../rows/decisions.js';
import { ofEffect } from '../rows/effects.js';
import { ofAwaited, ofHeard, ofIncarnation } from '../rows/incarnations.js';
import { ofGuard, ofKey, ofRef } from '../rows/keys.js';
import { ofNote } from '../rows/notes.js';
import { ofOffer } from '../rows/offers.js';
import { ofPending } from '../rows/pending.js';
import { ofNotification, ofPush } from '../rows/push.js';
import { ofQuarantine } from '../rows/quarantines.js';
import { ofTask } from '../rows/tasks.js';
import { ofTransfer } from '../rows/transfers.js';
import { ofWatch } from '../rows/watch.js';
import { ofWork } from '../rows/work.js';
import type { Slice } from './slice.js';

type Columns = object;

/** What nobody who has presented the case to a fence is to see in the middle of it. */
const MOVES: ReadonlySet<Change['do']> = new Set(['move_case', 'leap_case', 'close_case']);

/** What `holdfast.apply` makes; the end of a quarantine is a statement before it (lift.ts). */
type Applied = Exclude<Change, { readonly do: 'lift_quarantine' }>;

/** The list of `holdfast.apply` that makes each change, and the change as its row. */
const rows: {
  readonly [Do in Applied['do']]: (
    change: Extract<Applied, { readonly do: Do }>,
    slice: Slice,
  ) => [string, Columns];
} = {
  put_kind: ({ tenant, kind }, slice) => {
    const row = { tenant, kind: kind.kind, definition: JSON.stringify(kind) };
    return slice.kind === null
      ? ['add_kind', row]
      : ['replace_kind', { ...row, revision: slice.kind.revision }];
  },
  open_case: ({ row }) => ['open_case', ofCase(row)],
  move_case: ({ guard, to }) => ['move_case', { ...ofCase(to), ...ofGuard(guard) }],
  // Carried out in its place among the moves that are not the last.
  leap_case: ({ guard, to, transfer }) => [
    'pass_case',
    { ...ofCase(to), ...ofGuard(guard), ...ofTransfer(transfer) },
  ],
  close_case: ({ guard, closedAt }) => ['close_case', { ...ofGuard(guard), closed_at: closedAt }],
  add_offer: ({ guard, row }) => ['add_offer', { ...ofOffer(row), ...ofGuard(guard) }],
  set_offer: ({ from, row }) => [
    'set_offer',
    {
      ...ofKey(row.key),
      from,
      state: row.state,
      code: row.code,
      closed_at: row.closedAt,
      receipt: row.receipt,
      receipt_key: row.receiptKey,
    },
  ],
  add_decision: ({ row }) => ['add_decision', ofDecision(row)],
  add_transfer: ({ row }) => ['add_transfer', ofTransfer(row)],
  add_work: ({ guard, row }) => ['add_work', { ...ofWork(row), ...ofGuard(guard) }],
  supersede_work: ({ row }) => ['supersede_work', ofWork(row)],
  settle_work: ({ guard, row }) => ['settle_work', { ...ofWork(row), ...ofGuard(guard) }],
  add_note: ({ guard, row }) => ['add_note', { ...ofNote(row), ...ofGuard(guard) }],
  start_effect: ({ guard, again, row }) => [
    again ? 'restart_effect' : 'start_effect',
    { ...ofEffect(row), ...ofGuard(guard) },
  ],
  settle_effect: ({ guard, row }) => ['settle_effect', { ...ofEffect(row), ...ofGuard(guard) }],
  add_task: ({ row }) => ['add_task', ofTask(row)],
  save_task: ({ row }) => ['save_task', ofTask(row)],
  save_offer_task: ({ row }) => ['save_offer_task', ofTask(row)],
  add_pending: ({ row }) => ['add_pending', ofPending(row)],
  set_pending: ({ row }) => ['set_pending', ofPending(row)],
  keep_lease: ({ holder, until }) => ['keep_lease', { holder, until }],
  end_lease: ({ holder }) => ['end_lease', { holder }],
  claim: ({ row }) => ['claim', row],
  unclaim: ({ row }) => ['unclaim', row],
  set_plan: ({ row }) => ['set_plan', ofPlan(row)],
  set_sent_task: ({ row }) => ['set_sent_task', ofSentTask(row)],
  quarantine: ({ row }) => ['quarantine', ofQuarantine(row)],
  set_incarnation: ({ row }) => ['set_incarnation', ofIncarnation(row)],
  drop_awaited: ({ agent }) => ['drop_awaited', { agent }],
  set_awaited: ({ row }) => ['set_awaited', ofAwaited(row)],
  set_heard: ({ row }) => ['set_heard', ofHeard(row)],
  check_heard: ({ tenant, agent, peer, rev }) => ['check_heard', { tenant, agent, peer, rev }],
  add_push: ({ row }) => ['add_push', ofPush(row)],
  set_push: ({ row }) => ['set_push', ofPush(row)],
  remove_push: ({ tenant, pushId }) => ['remove_push', { tenant, push_id: pushId }],
  notify: ({ tenant, taskId, pushId, seq, body, at }) => [
    'notify',
    { tenant, task_id: taskId, push_id: pushId, seq, body, at },
  ],
  set_notification: ({ row }) => ['set_notification', ofNotification(row)],
  remove_notification: ({ tenant, pushId, seq }) => ['remove_notification', { tenant, push_id: pushId, seq }],
  add_watch: ({ row }) => ['add_watch', ofWatch(row)],
  remove_watch: ({ tenant, watchId }) => ['remove_watch', { tenant, watch_id: watchId }],
  prune_watches: ({ tenant, agent, now }) => ['prune_watches', { tenant, agent, now }],
  hear: ({ watchId, notificationId, at, most }) => [
    'hear',
    { watch_id: watchId, notification_id: notificationId, at, most },
  ],
  bury_notifications: ({ tenant, pushId, reason, at }) => [
    'bury_notifications',
    { tenant, push_id: pushId, reason, at },
  ],
};

/** A ruling as one command of a batch; sent again it is the same to the letter, so that it finds itself where it was carried out. */
export interface Command {
  readonly head: Columns;
  readonly lists: readonly (readonly [list: string, row: Columns])[];
  readonly changes: readonly Change[];
  /** The head of the case once this is committed; `null` where no case's chain tells of it. */
  readonly newHead: ChainHead | null;
}

/** What the rule had read, besides the slice's case, and what it decided. */
export interface Judged<T> {
  readonly ruling: Ruling<T>;
  readonly slice: Slice;
  readonly at: string;
  /** Whether the rule read the kind. */
  readonly byKind: boolean;
  /** Until when the decision may be committed, by the database's clock. */
  readonly acceptBy: string | undefined;
}

export function commandOf<T>({ ruling, slice, at, byKind, acceptBy }: Judged<T>, commitId: string): Command {
  const { changes, audit } = ruling;
  const lists = changes.flatMap((change) => (change.do === 'lift_quarantine' ? [] : [rowOf(change, slice)]));
  // A case moves once in a list; the moves before its last one are a list of their own.
  for (const list of lists.filter(([name]) => name === 'move_case').slice(0, -1)) list[0] = 'pass_case';
  if (audit === null) return { head: {}, lists, changes, newHead: null };
  const ref = ofRef(audit.ref);
  const freezes =
    slice.kind?.mode === 'separate' ? changes.filter((change) => change.do === 'add_offer') : [];
  for (const { guard } of freezes) lists.push(['freeze_case', ofGuard(guard)]);
  let newHead = slice.head;
  for (const fact of audit.facts) {
    const { entry, bytes } = chain(newHead, fact, audit.ref, at);
    const { seq, prevHash, hash } = entry;
    lists.push(['audit', { ...ref, seq, entry: bytes, prev_hash: prevHash, hash, commit_id: commitId }]);
    newHead = { seq, hash };
  }
  lists.push([slice.head === null ? 'first_head' : 'next_head', { ...ref, ...newHead }]);
  const head = {
    ...ref,
    seq: slice.head?.seq ?? 0,
    hash: slice.head?.hash ?? '',
    commit_id: commitId,
    // Whoever has presented the case to a fence is waited for: also before it is frozen.
    moves: freezes.length > 0 || changes.some(({ do: what }) => MOVES.has(what)),
    ...(acceptBy === undefined ? {} : { accept_by: acceptBy }),
    ...(byKind && slice.kind !== null ? { kind: slice.kind.name, revision: slice.kind.revision } : {}),
  };
  return { head, lists, changes, newHead };
}

/** Commands as the lists of `holdfast.commit`, each row with the number of its command. */
export function batchOf(commands: readonly Command[]): Readonly<Record<string, readonly Columns[]>> {
  const batch: Record<string, Columns[]> = {};
  for (const [n, { head, lists }] of commands.entries()) {
    for (const [list, row] of [['heads', head] as const, ...lists]) {
      batch[list] ??= [];
      batch[list].push({ n, ...row });
    }
  }
  return batch;
}

function rowOf(change: Applied, slice: Slice): [string, Columns] {
  const row = rows[change.do] as (change: Applied, slice: Slice) => [string, Columns];
  return row(change, slice);
}
