import { type AcceptanceKey, actsFor, HoldfastError, sha256Hex, toUtc } from '../../core/index.js';
import type { CloseOfferCommand } from '../commands.js';
import type { DecisionRow, OfferRow, Transfer } from '../model.js';
import { atEpoch, attemptOf, refuse } from './facts.js';
import { isAcross } from './kinds.js';
import { isOpen, keepReceipt, offerRow } from './offers.js';
import { contradicted } from './quarantine.js';
import type { LedgerView, Rule, StoredOffer } from './ruling.js';
import { isFor, released } from './transfers.js';

/*
 * How an offer closes whose receiver has a ledger of its own: by that ledger's answer, and by nothing else.
 *   open -> accepted             by the receipt: the release
 *   open -> rejected             by the stored rejection
 *   open -> withdrawn | expired  by the tombstone that a withdrawal left there
 *   open -> in_doubt             open still: it was to be withdrawn, and no answer came
 * A person may take the case over by force while it is in doubt (people.ts); it stays so then, until it is answered or a person says that
 * they have found out (doubt.ts). A receipt for it contradicts the takeover.
 */

export const markInDoubt: Rule<AcceptanceKey, OfferRow> = (view, key) => {
  const offer = separateOffer(view, key);
  const { ref, state, epoch, digest } = offer;
  if (state === 'in_doubt') return { changes: [], audit: null, result: offerRow(offer) };
  if (!isOpen(offer)) {
    return refuse({
      write: 'mark_in_doubt',
      ref,
      writer: key.sender,
      code: 'offer_decided',
      data: { state },
    });
  }
  const row: OfferRow = { ...offerRow(offer), state: 'in_doubt' };
  return {
    changes: [{ do: 'set_offer', from: state, row }],
    audit: {
      ref,
      facts: [
        {
          type: 'offer_in_doubt',
          actor: key.sender,
          ...attemptOf(key),
          ...atEpoch(epoch),
          rule: 'H6',
          digest,
        },
      ],
    },
    result: row,
  };
};

export const releaseOffer: Rule<Transfer, OfferRow> = (view, transfer) => {
  const { key, receipt, receiptKey } = transfer;
  const offer = separateOffer(view, key);
  const { ref } = offer;
  if (!isFor(offer, transfer)) {
    return refuse({
      write: 'release_offer',
      ref,
      writer: key.sender,
      code: 'receipt_invalid',
      message: 'The receipt is not for what was offered.',
    });
  }
  // Known already: by an acceptance in this very ledger, or from the provenance of a later envelope.
  if (offer.state === 'accepted') return keepReceipt(offer, receipt, receiptKey);
  const row = view.case(ref);
  const stands = row !== null && actsFor(row.owner) === key.sender && row.epoch === offer.epoch;
  if (!isOpen(offer) || !stands) return contradicted(view, transfer, row, offer);
  const { changes, fact } = released(view, row, offerRow(offer), transfer);
  const result: OfferRow = {
    ...offerRow(offer),
    state: 'accepted',
    closedAt: toUtc(view.now),
    receipt,
    receiptKey,
  };
  return { changes, audit: { ref, facts: [fact] }, result };
};

export const closeOffer: Rule<CloseOfferCommand, OfferRow> = (view, command) => {
  const { key, verdict, answer } = command;
  const offer = separateOffer(view, key);
  const { ref, epoch, acceptBy } = offer;
  const isTombstone = verdict === 'tombstone';
  const refused = { write: 'close_offer', ref, writer: key.sender };
  if (!isTombstone && command.digest !== offer.digest) {
    return refuse({ ...refused, code: 'duplicate_conflict' });
  }
  if (!isOpen(offer)) {
    const states = isTombstone ? ['withdrawn', 'expired'] : ['rejected'];
    if (states.includes(offer.state)) return { changes: [], audit: null, result: offerRow(offer) };
    return refuse({ ...refused, code: 'offer_decided', data: { state: offer.state } });
  }
  const closedAt = toUtc(view.now);
  const isLate = command.expired && view.now.getTime() > Date.parse(acceptBy);
  const state = isTombstone ? (isLate ? 'expired' : 'withdrawn') : 'rejected';
  const code = isTombstone ? 'withdrawn' : command.code;
  const decision: DecisionRow = {
    key: offer.key,
    caseId: ref.caseId,
    verdict,
    code,
    digest: isTombstone ? null : offer.digest,
    answer,
    taskId: null,
    epochBefore: epoch,
    epochAfter: epoch,
    decidedAt: closedAt,
  };
  const row: OfferRow = { ...offerRow(offer), state, code: isTombstone ? null : code, closedAt };
  return {
    changes: [
      { do: 'add_decision', row: decision },
      { do: 'set_offer', from: offer.state, row },
    ],
    audit: {
      ref,
      facts: [
        {
          type: 'offer_closed',
          actor: key.sender,
          ...attemptOf(key),
          ...atEpoch(epoch),
          rule: 'H6',
          digest: offer.digest,
          data: { state, reason: code, answer: sha256Hex(answer) },
        },
      ],
    },
    result: row,
  };
};

/** @throws offer_unknown */
export function separateOffer(view: LedgerView, key: AcceptanceKey): StoredOffer {
  const offer = view.offer(key);
  if (offer === null) throw new HoldfastError('offer_unknown');
  if (!isAcross(view, offer)) {
    throw new HoldfastError('usage', 'The offer is of a shared kind: this ledger decides it itself.');
  }
  return offer;
}
