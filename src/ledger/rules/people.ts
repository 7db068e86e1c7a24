import { actsFor, type CaseRef, HoldfastError, parsePerson, sha256Hex, toUtc } from '../../core/index.js';
import type { ChangeOwnerCommand } from '../commands.js';
import type { AuditFact, CaseRow } from '../model.js';
import { inFlight } from './effects.js';
import { atEpoch, attemptOf, refuse } from './facts.js';
import { isSeparate } from './kinds.js';
import { offerRow } from './offers.js';
import { judgeOwner, notOwner } from './ownership.js';
import { type Passing, passedAcross } from './passing.js';
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
 * In a `separate` kind all of it is inside one node, and proved by that (passing.ts).
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
  const refusal = judgeOwner(row, epoch, mover);
  if (row === null || refusal !== null) {
    const named = row !== null && refusal?.code === 'not_owner' ? notOwner(row, refusal.data) : refusal;
    return refuse({ ...refused, code: 'case_unknown', ...named });
  }
  const across = isSeparate(view, row);
  const node = actsFor(actor);
  const may = across ? actsFor(row.owner) === node : mayTake(row, node);
  if (change === 'takeover' && !may) return refuse({ ...refused, ...notOwner(row) });
  if (row.owner === to) throw new HoldfastError('usage', `The case is owned by ${to} already.`);
  const flying = inFlight(view, view.effects(ref));
  if (flying !== undefined) {
    return refuse({ ...refused, code: 'effect_in_flight', data: { key: flying.key } });
  }
  const passing = across ? passedAcross(view, row, command) : passedHere(view, row, command);
  if (!('to' in passing)) return passing;
  const { to: moved, changes, facts, about, data } = passing;
  const { superseded, changes: superseding } = supersede(view, ref);
  return {
    changes: [...changes, ...superseding],
    audit: {
      ref,
      facts: [
        ...facts,
        {
          type: 'owner_changed',
          actor,
          ...about,
          epochBefore: epoch,
          epochAfter: moved.epoch,
          rule: command.force === true ? 'risk_double_owner' : 'H2',
          data: {
            change,
            from: row.owner,
            to,
            reason,
            superseded,
            ...data,
          },
        },
      ],
    },
    result: moved,
  };
};

function passedHere(view: LedgerView, row: CaseRow, command: ChangeOwnerCommand): Passing {
  if (command.force === true) {
    throw new HoldfastError('usage', 'In a shared ledger nothing is in doubt: take the case without force.');
  }
  const { ref, owner, epoch } = row;
  const to: CaseRow = { ...row, owner: command.to, epoch: epoch + 1 };
  const { changes, facts } = voided(view, ref, command);
  const moved: Change = { do: 'move_case', guard: { ref, owner, epoch }, to };
  return { to, changes: [moved, ...changes], facts, about: {}, data: {} };
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
  command: Pick<ChangeOwnerCommand, 'actor' | 'voids'>,
): {
  readonly changes: readonly Change[];
  readonly facts: readonly AuditFact[];
  readonly superseded: readonly string[];
} {
  const { changes, facts } = voided(view, ref, command);
  const { superseded, changes: superseding } = supersede(view, ref);
  return { changes: [...changes, ...superseding], facts, superseded };
}

function supersede(view: LedgerView, ref: CaseRef): { superseded: string[]; changes: Change[] } {
  const work = view.openWork(ref);
  const settledAt = toUtc(view.now);
  return {
    superseded: work.map(({ id }) => id),
    changes: work.map((item) => ({ do: 'supersede_work', row: { ...item, state: 'superseded', settledAt } })),
  };
}

/** The open offer, if there is one, closes by a void. */
export function voided(
  view: LedgerView,
  ref: CaseRef,
  { actor, voids }: Pick<ChangeOwnerCommand, 'actor' | 'voids'>,
): { readonly changes: readonly Change[]; readonly facts: readonly AuditFact[] } {
  const open = view.openOffer(ref);
  const answer = answerTo(open, voids);
  if (open === null) return { changes: [], facts: [] };
  const { changes, fact } = voidWith(view, open, { actor, answer, at: toUtc(view.now) });
  return { changes, facts: [fact] };
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
