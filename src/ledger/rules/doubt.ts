import { actsFor, HoldfastError, parsePerson, sha256Hex, toUtc } from '../../core/index.js';
import type { SettleDoubtCommand } from '../commands.js';
import type { OfferRow } from '../model.js';
import { separateOffer } from './closing.js';
import { atEpoch, attemptOf } from './facts.js';
import { offerRow } from './offers.js';
import { notOwner } from './ownership.js';
import { resolutionOf } from './resolution.js';
import type { Rule } from './ruling.js';
import { tombstoneOf } from './tombstone.js';

/*
 * After a takeover by force the offer is in doubt still. It closes by the receiver's answer like any other, or else by a person of the
 * sender's node, who has found out by other ways that the receiver does not own the case. Were they wrong, the receipt that turns up
 * quarantines the case.
 */
export const settleDoubt: Rule<SettleDoubtCommand, OfferRow> = (view, { key, resolution, answer }) => {
  const offer = separateOffer(view, key);
  const { ref, epoch, digest, state } = offer;
  const row = view.case(ref);
  if (state !== 'in_doubt' || row === null || row.epoch === epoch) {
    throw new HoldfastError(
      'usage',
      'No takeover by force has left this offer in doubt: only its receiver closes it.',
    );
  }
  const node = parsePerson(resolution.by)?.node;
  if (node === undefined || actsFor(row.owner) !== node) {
    const { code, message, data } = notOwner(row);
    throw new HoldfastError(code, message, { data });
  }
  const said = resolutionOf(resolution, node);
  const closedAt = toUtc(view.now);
  const closed: OfferRow = { ...offerRow(offer), state: 'withdrawn', closedAt };
  return {
    changes: [
      { do: 'add_decision', row: tombstoneOf(offer, answer, null, closedAt) },
      { do: 'set_offer', from: state, row: closed },
    ],
    audit: {
      ref,
      facts: [
        {
          type: 'offer_closed',
          actor: resolution.by,
          ...attemptOf(key),
          ...atEpoch(epoch),
          rule: 'risk_double_owner',
          digest,
          data: {
            sender: key.sender,
            state: 'withdrawn',
            answer: sha256Hex(answer),
            ...said,
          },
        },
      ],
    },
    result: closed,
  };
};
