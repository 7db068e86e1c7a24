import type { CaseRef } from '../../core/index.js';
import { asOf, type CaseSnapshot, offerRow } from '../../ledger/index.js';
import { type PlanColumns, type SentTaskColumns, toPlan, toSentTask } from '../rows/candidates.js';
import { type CaseColumns, toCase } from '../rows/cases.js';
import { type DecisionColumns, toDecision } from '../rows/decisions.js';
import { type EffectColumns, toEffect } from '../rows/effects.js';
import { type NoteColumns, toNote } from '../rows/notes.js';
import { type OfferColumns, toOffer } from '../rows/offers.js';
import { type PendingColumns, toPending } from '../rows/pending.js';
import { type TransferColumns, toTransfer } from '../rows/transfers.js';
import { toWork, type WorkColumns } from '../rows/work.js';
import { type EntryColumns, toEntry } from './audit.js';
import { type Ask, caseOf, THIS_CASE } from './keys.js';

const rows = (table: string, order = 'ord') =>
  `(SELECT coalesce(json_agg(t ORDER BY t.${order}), '[]') FROM holdfast.${table} t WHERE ${THIS_CASE}) AS ${table}`;

/** One statement, so that all of it is of one state. */
const SNAPSHOT = {
  name: 'snapshot',
  text: `SELECT clock_timestamp() AS clock, ${rows('cases')}, ${rows('offers')}, ${rows('decisions')},
    ${rows('work_items')}, ${rows('effects')}, ${rows('notes')}, ${rows('transfers', 'new_epoch')},
    ${rows('pending')}, ${rows('candidate_plans')}, ${rows('sent_tasks')}, ${rows('audit', 'seq')}`,
};

interface Columns {
  clock: Date;
  cases: CaseColumns[];
  offers: OfferColumns[];
  decisions: DecisionColumns[];
  work_items: WorkColumns[];
  effects: EffectColumns[];
  notes: NoteColumns[];
  transfers: TransferColumns[];
  candidate_plans: PlanColumns[];
  sent_tasks: SentTaskColumns[];
  pending: PendingColumns[];
  audit: EntryColumns[];
}

/** Everything on one case; `given` is the time to judge by, where it is not the database's own. */
export async function snapshotOf(ask: Ask, ref: CaseRef, given: Date | undefined): Promise<CaseSnapshot> {
  const [row] = (await ask<Columns>(SNAPSHOT, caseOf(ref))) as [Columns];
  const [found] = row.cases;
  return {
    case: found === undefined ? null : toCase(found),
    offers: row.offers.map((columns) => offerRow(toOffer(columns))),
    decisions: row.decisions.map(toDecision),
    pending: row.pending.map(toPending),
    work: row.work_items.map(toWork),
    effects: row.effects.map((columns) => asOf(toEffect(columns), given ?? row.clock)),
    notes: row.notes.map(toNote),
    transfers: row.transfers.map(toTransfer),
    plan: row.candidate_plans.map(toPlan)[0] ?? null,
    sentTasks: row.sent_tasks.map(toSentTask),
    audit: row.audit.map(toEntry),
  };
}
