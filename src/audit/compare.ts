import { canonical, sha256Hex } from '../core/index.js';
import { boundsOf, type CaseSnapshot, type EffectRow } from '../ledger/index.js';
import { storedPlan, storedTasks } from './candidates.js';
import { attemptId } from './entries.js';
import type { ReplayedCase, ReplayedEffect } from './replayed.js';

/** Where the ledger says something else than the audit of the case (H8); empty when they agree. Ids and names only. */
export function compareWithLedger(replayed: ReplayedCase, snapshot: CaseSnapshot): string[] {
  const stored = asReplayed(snapshot);
  return [
    ...differ('case', fieldsOf(replayed.case), fieldsOf(stored.case)),
    ...mapsDiffer('offer', replayed.offers, stored.offers),
    ...mapsDiffer('decision', replayed.decisions, stored.decisions),
    ...mapsDiffer('pending', replayed.pending, stored.pending),
    ...mapsDiffer('work', replayed.work, stored.work),
    ...mapsDiffer('effect', replayed.effects, effectsFor(replayed.effects, snapshot.effects)),
    ...mapsDiffer('note', replayed.notes, stored.notes),
    ...mapsDiffer('transfer', replayed.transfers, stored.transfers),
    ...differ('plan', fieldsOf(replayed.plan), fieldsOf(stored.plan)),
    ...mapsDiffer('sent task', replayed.sentTasks, stored.sentTasks),
  ];
}

/** The ledger's rows, put as the audit puts them. */
function asReplayed(snapshot: CaseSnapshot): Omit<ReplayedCase, 'effects'> {
  const row = snapshot.case;
  return {
    case:
      row === null
        ? null
        : {
            kind: row.kind,
            status: row.status,
            owner: row.owner,
            epoch: row.epoch,
            contract: row.contract,
            bounds: boundsOf(row),
          },
    offers: new Map(
      snapshot.offers.map(({ key, state, code, digest, toAgent, epoch, receipt }) => [
        attemptId(key.sender, key.handoffId, key.attempt),
        { state, code, digest, toAgent, epoch, receipt: receipt === null ? null : sha256Hex(receipt) },
      ]),
    ),
    decisions: new Map(
      snapshot.decisions.map(({ key, verdict, code, digest, taskId, epochBefore, epochAfter, answer }) => [
        attemptId(key.sender, key.handoffId, key.attempt),
        { verdict, code, digest, taskId, epochBefore, epochAfter, answer: sha256Hex(answer) },
      ]),
    ),
    pending: new Map(
      snapshot.pending.map(({ key, state, digest, toAgent, contract, taskId, clarifications }) => [
        attemptId(key.sender, key.handoffId, key.attempt),
        {
          ...{ state, digest, toAgent, contract, taskId },
          questions: clarifications.map(({ question }) => sha256Hex(question)),
          answers: clarifications.flatMap((one) => (one.digest === null ? [] : [one.digest])),
        },
      ]),
    ),
    work: new Map(
      snapshot.work.map(({ id, state, owner, epoch, envelope, result }) => [
        id,
        {
          state,
          owner,
          epoch,
          envelope: sha256Hex(envelope),
          result: result === null ? null : sha256Hex(result),
        },
      ]),
    ),
    notes: new Map(
      snapshot.notes.map(({ id, writer, epoch, text }) => [id, { writer, epoch, digest: sha256Hex(text) }]),
    ),
    transfers: new Map(
      snapshot.transfers.map(({ key, toAgent, newEpoch, digest, receipt }) => [
        String(newEpoch),
        {
          attempt: attemptId(key.sender, key.handoffId, key.attempt),
          toAgent,
          digest,
          receipt: sha256Hex(receipt),
        },
      ]),
    ),
    plan: storedPlan(snapshot.plan),
    sentTasks: storedTasks(snapshot.sentTasks),
  };
}

/** An effect becomes unknown by itself when its limit passes; no entry says so, and none is missing. */
function effectsFor(
  replayed: ReadonlyMap<string, ReplayedEffect>,
  rows: readonly EffectRow[],
): ReadonlyMap<string, ReplayedEffect> {
  return new Map(
    rows.map(({ key, state, operation, amount, owner, epoch }) => {
      const overdue = state === 'unknown' && replayed.get(key)?.state === 'started';
      return [key, { state: overdue ? 'started' : state, operation, amount, owner, epoch }];
    }),
  );
}

function mapsDiffer(
  what: string,
  audit: ReadonlyMap<string, object>,
  ledger: ReadonlyMap<string, object>,
): string[] {
  return [...new Set([...audit.keys(), ...ledger.keys()])].flatMap((id) =>
    differ(`${what} ${id}`, fieldsOf(audit.get(id) ?? null), fieldsOf(ledger.get(id) ?? null)),
  );
}

type Fields = ReadonlyMap<string, unknown> | null;

function fieldsOf(value: object | null): Fields {
  return value === null ? null : new Map(Object.entries(value));
}

function differ(what: string, audit: Fields, ledger: Fields): string[] {
  if (audit === null || ledger === null) {
    return audit === ledger ? [] : [`${what}: only in the ${audit === null ? 'ledger' : 'audit'}`];
  }
  return [...audit.keys()]
    .filter((name) => canonical(audit.get(name)) !== canonical(ledger.get(name)))
    .map((name) => `${what}: ${name} differs`);
}
