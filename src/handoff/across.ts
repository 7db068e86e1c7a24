import {
  type AcceptanceKey,
  actsFor,
  type Clock,
  digestOf,
  HoldfastError,
  handoffIdOf,
  newId,
} from '../core/index.js';
import type { ReceiptClaims } from '../envelope/index.js';
import type { CaseRow, ChangeOwnerCommand, ChangeProof, LedgerStore, OfferRow } from '../ledger/index.js';
import type { NodeIdentity } from '../trust/index.js';
import type { HandOffResult } from './model.js';

/*
 * An agent and its persons pass a case among each other while other organisations have ledgers of their own: the node signs for the change,
 * so that it can be shown to them with the next envelope, and an offer that is open is closed by its receiver's answer first.
 */

export interface AcrossOptions {
  readonly identity: NodeIdentity;
  readonly clock: Clock;
  readonly ledger: Pick<LedgerStore, 'changeOwner' | 'listOffers' | 'incarnation'>;
  /** Has the receiver close an open offer, or say what it decided. */
  withdraw(key: AcceptanceKey, reason: string): Promise<HandOffResult>;
}

/**
 * @throws offer_decided where the offer was accepted meanwhile; withdraw_needed where its receiver does not answer; and the refusals of the ledger
 */
export async function changeAcross(
  row: CaseRow,
  command: Omit<ChangeOwnerCommand, 'voids' | 'proof'>,
  options: AcrossOptions,
): Promise<CaseRow> {
  const self = options.identity.url;
  const { epoch, force = false, ...change } = command;
  // What is refused anyhow withdraws nothing.
  const stands = row.epoch === epoch && actsFor(row.owner) === self && row.status === 'open';
  const isDoubtful = stands && (await closeOffer(row, force, options));
  if (force && stands && !isDoubtful) {
    throw new HoldfastError(
      'usage',
      `No offer of ${row.ref.caseId} at epoch ${epoch} is in doubt any more: look again, and take it without force.`,
    );
  }
  const proof = await prove(row, { ...command, force: isDoubtful }, options);
  return options.ledger.changeOwner({
    ...{ ...change, epoch, proof, voids: null },
    ...(isDoubtful ? { force: true } : {}),
  });
}

/** Whether the case may only be taken by force, because the receiver of its open offer does not answer. */
async function closeOffer(row: CaseRow, force: boolean, options: AcrossOptions): Promise<boolean> {
  const open = await openOfferOf(row, options);
  if (open === undefined) return false;
  const { key, toAgent } = open;
  const result = await options.withdraw(key, 'the owner changes');
  if (result.state === 'accepted') {
    const message = `Too late: ${toAgent} accepted it (${key.handoffId}, attempt ${key.attempt}).`;
    throw new HoldfastError('offer_decided', message, { data: { state: 'accepted' } });
  }
  if (result.state !== 'open') return false;
  if (force) return true;
  throw new HoldfastError(
    'withdraw_needed',
    `${toAgent} does not answer the withdrawal of ${key.handoffId}, attempt ${key.attempt}, and may own the case: nothing was changed. It is asked until it answers. \`holdfast attention show ${row.ref.caseId}\` says what can be done.`,
    { data: { peer: toAgent, problem: result.problem } },
  );
}

/** One of an earlier epoch is what an earlier takeover by force left in doubt, and bars nobody. */
async function openOfferOf(
  { ref, epoch }: CaseRow,
  { ledger }: AcrossOptions,
): Promise<OfferRow | undefined> {
  const offers = await ledger.listOffers(ref.tenant, { caseId: ref.caseId, open: true });
  return offers.find((offer) => offer.ref.root === ref.root && offer.epoch === epoch);
}

/** The digest is of what was approved: who passes which case to whom, and why. */
async function prove(
  { ref, owner: from, epoch }: CaseRow,
  { change, actor, to, reason, force }: Omit<ChangeOwnerCommand, 'voids' | 'proof'>,
  { identity, clock, ledger }: AcrossOptions,
): Promise<ChangeProof> {
  const { root, caseId } = ref;
  // The epoch that an acceptance would have begun is nobody's.
  const oldEpoch = force === true ? epoch + 1 : epoch;
  const digest = digestOf({ change, actor, from, to, root, case_id: caseId, epoch, reason });
  const claims: ReceiptClaims = {
    iss: identity.url,
    root,
    case_id: caseId,
    handoff_id: handoffIdOf(caseId, oldEpoch),
    attempt: 1,
    from_agent: from,
    to_agent: to,
    old_epoch: oldEpoch,
    new_epoch: oldEpoch + 1,
    digest,
    incarnation: await ledger.incarnation(),
    iat: Math.floor(clock.now().getTime() / 1000),
    jti: newId('receipt'),
  };
  const receipt = await identity.signReceipt(claims);
  return { from, digest, receipt, receiptKey: JSON.stringify(identity.publicKey) };
}
