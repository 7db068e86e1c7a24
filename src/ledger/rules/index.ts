import { addNote, closeCase, openCase } from './cases.js';
import { accept, recordDelivery, reject } from './decisions.js';
import { settleEffect, startEffect } from './effects.js';
import { putKind } from './kinds.js';
import { intendOffer, markOffered, recordReceipt, voidOffer } from './offers.js';
import type { LedgerView, Rule, Ruling } from './ruling.js';
import { createTask, saveTask } from './tasks.js';
import { settleWork } from './work.js';

/** The state machines and invariants of the ledger, each written once, for every storage. */
const rules = {
  putKind,
  openCase,
  closeCase,
  addNote,
  intendOffer,
  markOffered,
  voidOffer,
  recordReceipt,
  accept,
  reject,
  recordDelivery,
  startEffect,
  settleEffect,
  settleWork,
  createTask,
  saveTask,
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
