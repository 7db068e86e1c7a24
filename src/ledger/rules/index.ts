import { addNote, closeCase, openCase } from './cases.js';
import { accept, recordDelivery, reject } from './decisions.js';
import { settleEffect, startEffect } from './effects.js';
import { putKind } from './kinds.js';
import { intendOffer, markOffered, recordReceipt, voidOffer } from './offers.js';
import { createTask, saveTask } from './tasks.js';
import { settleWork } from './work.js';

/** The state machines and invariants of the ledger, each written once, for every storage. */
export const rules = {
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
