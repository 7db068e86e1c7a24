import { actsFor } from '../core/index.js';
import type { AuditEntry, CaseRow } from '../ledger/index.js';
import type { Explained, Of } from './attention-item.js';

/** An offer that its receiver may have accepted without anybody here knowing; or, after a takeover by force, a case that two may own. */
export function explainDoubt(
  { ref, what, data }: Of<'offer_in_doubt' | 'risk_double_owner'>,
  row: CaseRow | null,
  audit: readonly AuditEntry[],
  self: string,
): Explained {
  const { handoffId, attempt, toAgent, contract, acceptBy, sender } = data;
  const root = ref.root === self ? '' : ` --root ${ref.root}`;
  const offer = `${handoffId} --attempt ${attempt}${root}`;
  const here = sender === self && row !== null && actsFor(row.owner) === self;
  const isTaken = what === 'risk_double_owner';
  const ask = `holdfast handoff void ${offer}`;
  const query = `holdfast handoff query ${offer}`;
  const take = `holdfast case take ${ref.caseId}${root} --person ID --epoch ${row?.epoch ?? data.epoch} --force --reason "TEXT"`;
  const settle = `holdfast attention resolve ${ref.caseId}${root} --what risk-double-owner --person ID --reason "TEXT"`;
  return {
    fields: [
      ['handoff', `${handoffId}, attempt ${attempt}`],
      ['to', toAgent],
      ['contract', contract],
      ['accept by', acceptBy],
    ],
    history: audit.filter(
      (entry) =>
        (entry.handoffId === handoffId && entry.attempt === attempt) || entry.rule === 'risk_double_owner',
    ),
    safe: isTaken
      ? [
          `Find out from the people of ${toAgent} whether it accepted ${handoffId}, attempt ${attempt}, and what it has done on the case. Until that is known, do nothing outside that it may have done too.`,
          'It is asked on, and told that the case was taken. If it answers that it refused the offer, or never had it, this item goes by itself. If it had accepted, the case is quarantined on both sides.',
          'If they say that it does not own the case and never will, resolve this: the offer is closed, and effects and offers are possible here again. A receipt that turns up after all quarantines the case.',
          'Until then no effect starts here and nothing is offered; notes, and passing the case on among persons, are possible.',
        ]
      : [
          `${toAgent} does not answer: nobody here knows whether it owns the case. It is asked until it answers, and the offer closes by that answer. Waiting is safe.`,
          'Until then no effect starts here, and nothing is offered to anybody else. Notes are possible. Do nothing outside that the receiver may be doing.',
          `If it cannot be reached, look whether its address, its key and the network are as configured; where its key has changed, take the new one (\`holdfast peer add --replace\`). Or ask its people.`,
          'If it answers and the log has `receipt_invalid` or `duplicate_conflict`, the offer may have been changed on its way, which only TLS prevents: no answer closes it then. Agree with its people whose the case is.',
          'Only if the case cannot wait and the receiver is gone: take it by force, as a person. Two may own the case then, until the receiver has answered or somebody has found out.',
        ],
    commands: here ? (isTaken ? [query, settle] : [query, ask, take]) : [`at the agent ${sender}:`, query],
  };
}
