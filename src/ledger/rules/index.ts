import type { AcceptanceKey } from '../../core/index.js';
import { accept } from './acceptance.js';
import { setPlan } from './candidates.js';
import { addNote, closeCase, openCase } from './cases.js';
import { claimOffers, claimWork, heartbeat, release } from './claims.js';
import { closeOffer, markInDoubt, releaseOffer } from './closing.js';
import { reject, withdraw } from './decisions.js';
import { recordDelivery } from './deliveries.js';
import { settleDoubt } from './doubt.js';
import { settleEffect, startEffect } from './effects.js';
import { beginIncarnation, hearIncarnation, peerAnswered, waivePeer } from './incarnation.js';
import { putKind } from './kinds.js';
import { intendOffer, markOffered, recordReceipt, voidOffer } from './offers.js';
import { answerOffer, claimPending, deferOffer } from './pending.js';
import { changeOwner } from './people.js';
import {
  addPush,
  claimPushes,
  pruneNotifications,
  removePush,
  retryNotifications,
  settleNotification,
} from './push.js';
import { onAttempt, onCase, quarantine } from './quarantine.js';
import { settleReceipt } from './receipts.js';
import { recoverCase } from './recovery.js';
import { recordRevocation } from './revocation.js';
import type { LedgerView, Rule, Ruling } from './ruling.js';
import { answerQuestion, noteTask } from './sent-tasks.js';
import { createTask, saveTask } from './tasks.js';
import { addWatch, hear, pruneWatches, removeWatch } from './watch.js';
import { settleWork } from './work.js';

const byKey = ({ key }: { readonly key: AcceptanceKey }) => key;

/** The state machines and invariants of the ledger, each written once, for every storage. */
const rules = {
  putKind,
  openCase: onCase(openCase),
  closeCase: onCase(closeCase),
  changeOwner: onCase(changeOwner),
  addNote: onCase(addNote),
  intendOffer: onCase(intendOffer),
  markOffered: onAttempt(markOffered, (key) => key),
  voidOffer: onAttempt(voidOffer, byKey),
  recordReceipt: onAttempt(recordReceipt, byKey),
  recordRevocation: onAttempt(recordRevocation, byKey),
  markInDoubt: onAttempt(markInDoubt, (key) => key),
  releaseOffer: onAttempt(releaseOffer, byKey),
  closeOffer: onAttempt(closeOffer, byKey),
  settleDoubt: onAttempt(settleDoubt, byKey),
  accept: onCase(onAttempt(accept, byKey)),
  reject: onCase(onAttempt(reject, byKey)),
  withdraw: onCase(onAttempt(withdraw, byKey)),
  deferOffer: onCase(onAttempt(deferOffer, byKey)),
  answerOffer: onCase(onAttempt(answerOffer, byKey)),
  recordDelivery: onCase(onAttempt(recordDelivery, byKey)),
  startEffect: onCase(startEffect),
  settleEffect: onCase(settleEffect),
  settleWork: onCase(settleWork),
  createTask,
  saveTask,
  heartbeat,
  claimOffers,
  claimWork,
  claimPending,
  release,
  quarantine,
  addPush,
  removePush,
  claimPushes,
  settleNotification,
  retryNotifications,
  pruneNotifications,
  addWatch,
  removeWatch,
  pruneWatches,
  hear,
  recoverCase,
  setPlan: onCase(setPlan),
  noteTask: onAttempt(noteTask, byKey),
  answerQuestion: onAttempt(answerQuestion, byKey),
  beginIncarnation,
  peerAnswered,
  waivePeer,
  hearIncarnation,
  settleReceipt,
} as const;

/** A command is named, so that a storage can carry it to where it is judged: another thread, or after a look at another machine. */
export type RuleName = keyof typeof rules;
export type CommandOf<N extends RuleName> = Parameters<(typeof rules)[N]>[1];
export type ResultOf<N extends RuleName> = (typeof rules)[N] extends Rule<never, infer T> ? T : never;

export type Judge = <N extends RuleName>(
  view: LedgerView,
  name: N,
  command: CommandOf<N>,
) => Ruling<ResultOf<N>>;

export const judge: Judge = <N extends RuleName>(view: LedgerView, name: N, command: CommandOf<N>) => {
  const rule = rules[name] as Rule<CommandOf<N>, ResultOf<N>>;
  return rule(view, command);
};
