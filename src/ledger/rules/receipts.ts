import { actsFor, HoldfastError, toUtc } from '../../core/index.js';
import type { ReceiptOutcome, SettleReceiptCommand } from '../incarnation.js';
import { isOpen, offerRow } from './offers.js';
import { contradiction } from './quarantine.js';
import type { Rule, Ruling } from './ruling.js';
import { begins, isFor, learned, released, sameKey } from './transfers.js';

/*
 * A receipt that a peer held, verified, of a change of owner to or from this agent.
 *   the case is of a shared kind               -> foreign: no other ledger moves it, whatever is signed there
 *   kept here already                          -> known
 *   the ledger is beyond its epoch             -> passed: by an import, or a recovery, in which a person has judged; not where only a
 *                                                 takeover by force went beyond the very offer that it accepts
 *   a peer accepted, owner and epoch are as in it, this ledger's offer is open, or is lost -> released, or learned
 *   anything else                              -> quarantined: a closed case, one that the peer may not be handed, and what this agent itself accepted, or passed to or from a person of its own, and
 *                                                 does not know is lost, with what it did then
 * No epoch is issued here: each is the one that the receipt proves.
 */
export const settleReceipt: Rule<SettleReceiptCommand, ReceiptOutcome> = (view, command) => {
  const { agent, by, transfer, contracts, judged = false } = command;
  const { ref, key } = transfer;
  if (actsFor(key.sender) !== agent && actsFor(transfer.toAgent) !== agent) {
    throw new HoldfastError('usage', 'The receipt is of a change of owner between others.');
  }
  if (view.quarantined(ref)) return unchanged('quarantined');
  const row = view.case(ref);
  const kind = row === null ? null : view.kind(ref.tenant, row.kind);
  if (kind?.mode === 'shared') return unchanged('foreign');
  const offer = view.offer(key);
  const known = view.transfers(ref).find(({ newEpoch }) => newEpoch === transfer.newEpoch);
  if (known !== undefined && sameKey(known.key, key) && known.digest === transfer.digest) {
    return unchanged('known');
  }
  // A takeover by force leaves out the epoch that the acceptance began.
  const isDenied = offer !== null && offer.state !== 'accepted' && isFor(offer, transfer) && !judged;
  if (known === undefined && !isDenied && row !== null && row.epoch > transfer.newEpoch) {
    return unchanged('passed');
  }
  const isOthers = actsFor(transfer.toAgent) !== agent;
  const mayHave = contracts === undefined || kind?.contracts.some((one) => contracts.includes(one)) === true;
  const follows =
    known === undefined && isOthers && row !== null && row.status === 'open' && begins(row, transfer);
  if (follows && offer === null && mayHave) {
    const settledAt = toUtc(view.now);
    const left = view.openWork(ref).map((item) => ({ ...item, state: 'superseded' as const, settledAt }));
    const { changes, fact } = learned(row, transfer, by, left);
    return { changes, audit: { ref, facts: [fact] }, result: 'learned' };
  }
  if (follows && offer !== null && isOpen(offer) && isFor(offer, transfer)) {
    const { changes, fact } = released(view, row, offerRow(offer), transfer);
    return { changes, audit: { ref, facts: [fact] }, result: 'released' };
  }
  return {
    changes: [{ do: 'quarantine', row: contradiction(view, transfer, row, offer) }],
    audit: null,
    result: 'quarantined',
  };
};

function unchanged(result: ReceiptOutcome): Ruling<ReceiptOutcome> {
  return { changes: [], audit: null, result };
}
