import { HoldfastError, handoffIdOf, sha256Hex } from '../../core/index.js';
import type { ChangeOwnerCommand } from '../commands.js';
import type { AuditFact, CaseRow, Transfer } from '../model.js';
import { attemptOf, refuse } from './facts.js';
import { peersOf, waivedIn } from './incarnation.js';
import type { Change, LedgerView, Ruling } from './ruling.js';
import { moves } from './transfers.js';

/** How the owner moves, and what of the offer that is open. */
export interface Passing {
  readonly to: CaseRow;
  readonly changes: readonly Change[];
  readonly facts: readonly AuditFact[];
  readonly about: Pick<AuditFact, 'handoffId' | 'attempt' | 'digest'>;
  readonly data: Readonly<Record<string, unknown>>;
}

/**
 * Where the receiver of an open offer has a ledger of its own, it may have accepted: the offer has to be closed by its answer first. Only a
 * forced takeover goes on without one, and leaves out the epoch that an acceptance would have begun; the offer stays in doubt.
 */
export function passedAcross(
  view: LedgerView,
  row: CaseRow,
  command: ChangeOwnerCommand,
): Passing | Ruling<never> {
  const { ref, owner, epoch } = row;
  const { change, actor, to, proof, force = false } = command;
  if (proof?.from !== owner || command.voids !== null) {
    throw new HoldfastError(
      'usage',
      'In a separate kind the node proves a change of owner, and voids nothing.',
    );
  }
  const open = view.openOffer(ref);
  // One that is older was left in doubt by a forced takeover: what it may come to is nothing that this change adds to.
  const standing = open !== null && open.epoch === epoch ? open : null;
  if (standing !== null && !(force && standing.state === 'in_doubt')) {
    return refuse({ write: change, ref, writer: actor, code: 'withdraw_needed' });
  }
  if (force && (standing === null || change !== 'takeover')) {
    throw new HoldfastError('usage', 'No offer at this epoch is in doubt: take the case without force.');
  }
  // A peer may prove that this ledger has lost changes of owner: their epochs would be issued once more.
  const peers = peersOf(view, view.kind(ref.tenant, row.kind), owner);
  if (peers.missing !== null) {
    return refuse({ write: change, ref, writer: actor, code: 'peers_unanswered', data: peers.missing });
  }
  const oldEpoch = force ? epoch + 1 : epoch;
  const { digest, receipt, receiptKey } = proof;
  const handoffId = handoffIdOf(ref.caseId, oldEpoch);
  const transfer: Transfer = {
    key: { tenant: ref.tenant, root: ref.root, sender: owner, handoffId, attempt: 1 },
    ref,
    toAgent: to,
    oldEpoch,
    newEpoch: oldEpoch + 1,
    digest,
    receipt,
    receiptKey,
  };
  const moved: CaseRow = { ...row, owner: to, epoch: transfer.newEpoch };
  const doubtful =
    standing === null ? {} : { doubt: { toAgent: standing.toAgent, ...attemptOf(standing.key) } };
  return {
    to: moved,
    changes: moves(row, moved, transfer),
    facts: [],
    about: { handoffId, attempt: 1, digest },
    data: { receiptDigest: sha256Hex(receipt), ...doubtful, ...waivedIn(peers) },
  };
}
