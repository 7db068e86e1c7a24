import { actsFor, type CaseRef, HoldfastError, parsePerson, sha256Hex, toUtc } from '../../core/index.js';
import type { ChangeOwnerCommand } from '../commands.js';
import type { AuditFact, CaseRow } from '../model.js';
import { inFlight } from './effects.js';
import { atEpoch, attemptOf, refuse } from './facts.js';
import { isSeparate } from './kinds.js';
import { offerRow } from './offers.js';
import { judgeOwnership, notOwner } from './ownership.js';
import { canceled } from './pending.js';
import { reasonOf } from './resolution.js';
import type { Change, LedgerView, Rule, StoredOffer } from './ruling.js';
import { tombstoneOf } from './tombstone.js';

/*
 * A person is an owner like an agent: owner and epoch move together, and whatever the owner before still writes is stale.
 *   takeover      any owner -> person   by that person, at the node that acts for the owner, or at the case's root
 *   escalation    agent     -> person   by the agent, of its own node
 *   reassignment  person    -> person   by the one who owns it, within one node
 *   return        person    -> agent    by the one who owns it, to the agent of their node
 * At no instant is there no owner: the offer that was open, the work that was left and the owner change in one transaction.
 */

export const changeOwner: Rule<ChangeOwnerCommand, CaseRow> = (view, command) => {
  checkForm(command);
  const { ref, epoch, actor, to, change } = command;
  const reason = reasonOf(command.reason);
  const refused = { write: change, ref, writer: actor };
  const row = view.case(ref);
  // A takeover is by one who is not the owner: it is judged as the owner's, then by who may take from the owner.
  const mover = change === 'takeover' && row !== null ? row.owner : actor;
  const refusal = judgeOwnership(row, epoch, mover);
  if (row === null || refusal !== null) {
    const named = row !== null && refusal?.code === 'not_owner' ? notOwner(row, refusal.data) : refusal;
    return refuse({ ...refused, code: 'case_unknown', ...named });
  }
  if (change === 'takeover' && !mayTake(row, actsFor(actor))) return refuse({ ...refused, ...notOwner(row) });
  assertShared(view, row);
  if (row.owner === to) throw new HoldfastError('usage', `The case is owned by ${to} already.`);
  const flying = inFlight(view, view.effects(ref));
  if (flying !== undefined) {
    return refuse({ ...refused, code: 'effect_in_flight', data: { key: flying.key } });
  }
  const moved: CaseRow = { ...row, owner: to, epoch: epoch + 1 };
  const { changes, facts, superseded } = cleared(view, ref, command);
  return {
    changes: [{ do: 'move_case', guard: { ref, owner: row.owner, epoch }, to: moved }, ...changes],
    audit: {
      ref,
      facts: [
        ...facts,
        {
          type: 'owner_changed',
          actor,
          epochBefore: epoch,
          epochAfter: epoch + 1,
          rule: 'H2',
          data: { change, from: row.owner, to, reason, superseded },
        },
      ],
    },
    result: moved,
  };
};

/**
 * Across ledgers an offer closes by what the other one has decided, and a change of owner needs a proof that it takes: nothing here is one.
 * @throws usage
 */
function assertShared(view: LedgerView, row: CaseRow): void {
  if (!isSeparate(view, row)) return;
  throw new HoldfastError(
    'usage',
    `Cases of kind ${row.kind} are of the mode separate: no person takes them over.`,
  );
}

/** Whose operator may name a person to take the case: the owner's node, and the node that opened it, should the owner's be gone. */
export function mayTake(row: CaseRow, node: string): boolean {
  return actsFor(row.owner) === node || row.ref.root === node;
}

function checkForm({ change, actor, to, ref }: ChangeOwnerCommand): void {
  const [by, next] = [parsePerson(actor), parsePerson(to)];
  const sound = {
    takeover: by !== null && to === actor,
    escalation: by === null && next?.node === actor,
    reassignment: by !== null && next?.node === by.node,
    return: by !== null && to === by.node,
  };
  if (!sound[change] || ref.tenant === '' || ref.root === '') {
    throw new HoldfastError('usage', `A case cannot go from ${actor} to ${to} by a ${change}.`);
  }
}

/** What the owner before has left open is closed in the same transaction: the one offer, and work. */
export function cleared(
  view: LedgerView,
  ref: CaseRef,
  { actor, voids }: Pick<ChangeOwnerCommand, 'actor' | 'voids'>,
): {
  readonly changes: readonly Change[];
  readonly facts: readonly AuditFact[];
  readonly superseded: readonly string[];
} {
  const open = view.openOffer(ref);
  const answer = answerTo(open, voids);
  const at = toUtc(view.now);
  const voided = open === null ? null : voidWith(view, open, { actor, answer, at });
  const work = view.openWork(ref);
  return {
    changes: [
      ...(voided?.changes ?? []),
      ...work.map(
        (item): Change => ({ do: 'supersede_work', row: { ...item, state: 'superseded', settledAt: at } }),
      ),
    ],
    facts: voided === null ? [] : [voided.fact],
    superseded: work.map(({ id }) => id),
  };
}

function answerTo(open: StoredOffer | null, voids: ChangeOwnerCommand['voids']): string {
  if (open === null) return '';
  const named = voids?.key;
  const same =
    named?.sender === open.key.sender &&
    named.handoffId === open.key.handoffId &&
    named.attempt === open.key.attempt;
  if (voids === null || !same) throw new HoldfastError('offer_open');
  return voids.answer;
}

/** As `voidOffer` does it, but by one who need not be its sender. */
function voidWith(
  view: LedgerView,
  open: StoredOffer,
  { actor, answer, at }: { actor: string; answer: string; at: string },
): { readonly changes: readonly Change[]; readonly fact: AuditFact } {
  const { key, epoch, digest, state } = open;
  const task = canceled(view, key, answer);
  return {
    changes: [
      { do: 'add_decision', row: tombstoneOf(open, answer, task.taskId, at) },
      ...task.changes,
      { do: 'set_offer', from: state, row: { ...offerRow(open), state: 'withdrawn', closedAt: at } },
    ],
    fact: {
      type: 'offer_closed',
      actor,
      ...attemptOf(key),
      ...atEpoch(epoch),
      rule: 'H4',
      digest,
      data: {
        sender: key.sender,
        state: 'withdrawn',
        reason: 'owner_changed',
        answer: sha256Hex(answer),
        ...(task.taskId === null ? {} : { taskId: task.taskId }),
      },
    },
  };
}
