import { actsFor, ERROR_TABLE } from '../core/index.js';
import { isInside, type LedgerStore, type Transfer } from '../ledger/index.js';
import type { NodeIdentity } from '../trust/index.js';
import { type Delivery, rejectionPart } from './answers.js';

export interface ContradictionOptions {
  readonly identity: NodeIdentity;
  readonly ledger: Pick<LedgerStore, 'getOffer' | 'releaseOffer' | 'listDecisions' | 'withdraw'>;
}

/** Decisions that are looked through, newest first. */
const LOOKED_AT = 50;

/**
 * An offer that is refused for owner or epoch may bring the proof that two own the case: the receipt of an offer that a person here took the
 * case from by force, or the word of its sender that a person there did. The ledger is told, and closes the case to every write.
 * @throws case_quarantined
 */
export async function reportContradiction(
  delivery: Pick<Delivery, 'ref' | 'principal'>,
  provenance: readonly Transfer[],
  { identity, ledger }: ContradictionOptions,
): Promise<void> {
  const { ref, principal } = delivery;
  for (const transfer of provenance.filter((one) => !isInside(one) && one.key.sender === identity.url)) {
    const offer = await ledger.getOffer(transfer.key);
    if (offer !== null && offer.state !== 'accepted' && offer.digest === transfer.digest) {
      await ledger.releaseOffer(transfer);
    }
  }
  const takeovers = provenance.filter((one) => isInside(one) && actsFor(one.toAgent) === principal.agent);
  if (takeovers.length === 0) return;
  const accepted = (await ledger.listDecisions(ref, principal.agent, LOOKED_AT)).find(
    ({ verdict }) => verdict === 'accepted',
  );
  if (accepted === undefined) return;
  const { key } = accepted;
  const reason = ERROR_TABLE.withdrawn.meaning;
  const answer = JSON.stringify(rejectionPart({ code: 'withdrawn', reason }, { key, ref }, true));
  const toAgent = identity.url;
  for (const takeover of takeovers) await ledger.withdraw({ key, ref, answer, principal, toAgent, takeover });
}
