import { type AcceptanceKey, ERROR_TABLE, HoldfastError, isErrorCode, personOwner } from '../core/index.js';
import { type EnvelopeRegistry, readOffer } from '../envelope/index.js';
import type { DecisionRow, LedgerStore, PendingOffer } from '../ledger/index.js';
import type { Message } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';
import { ContractRefusal, type Delivery } from './answers.js';
import { checkArguments } from './arguments.js';
import type { Decisions } from './decisions.js';
import {
  incarnationFor,
  type JudgeOptions,
  judgeContent,
  judgePermission,
  judgeStanding,
  type OfferInHand,
  runChecks,
} from './judge.js';
import type { AcceptPendingInput, RejectPendingInput } from './model.js';
import { clarificationsOf } from './pending.js';
import { checkReason } from './people.js';
import type { PendingDecisions } from './port.js';

export interface ByPersonOptions extends JudgeOptions {
  readonly ledger: LedgerStore;
  readonly envelopes: EnvelopeRegistry;
  readonly decisions: Decisions;
  inHand(read: ReturnType<typeof readOffer>, principal: Principal): OfferInHand;
}

/**
 * Persons of this node decide offers that are stored undecided. They stand in for the node's own check; the document, permission, ownership,
 * the contract and its evidence, and every check of the transaction, hold for them as for it.
 */
export function createByPerson(options: ByPersonOptions): PendingDecisions {
  const { identity, ledger, decisions } = options;

  /** @throws offer_unknown, offer_decided */
  async function undecided(key: AcceptanceKey): Promise<PendingOffer & { readonly message: string }> {
    const pending = await ledger.getPending(key);
    const name = `${key.handoffId}, attempt ${key.attempt}`;
    if (pending === null || pending.toAgent !== identity.url) {
      throw new HoldfastError('offer_unknown', `No offer ${name} waits here.`);
    }
    const { message } = pending;
    if (message === null) throw await tooLate(key);
    return { ...pending, message };
  }

  async function tooLate(key: AcceptanceKey): Promise<HoldfastError> {
    const state = (await ledger.findDecision(key))?.verdict ?? null;
    return new HoldfastError('offer_decided', `Too late: the offer is decided (${state}).`, {
      data: { state },
    });
  }

  async function decided(key: AcceptanceKey, wanted: DecisionRow['verdict']): Promise<DecisionRow> {
    const decision = await ledger.findDecision(key);
    if (decision?.verdict !== wanted) throw await tooLate(key);
    return decision;
  }

  function principalOf({ key, tokenId }: PendingOffer): Principal {
    return { agent: key.sender, tenant: key.tenant, tokenId };
  }

  return {
    async acceptPending(input: AcceptPendingInput): Promise<DecisionRow> {
      checkArguments('acceptPending', input);
      const { key } = input;
      const decidedBy = personOwner(input.person, identity.url);
      const pending = await undecided(key);
      const message: Message = JSON.parse(pending.message);
      const offer = options.inHand(
        readOffer(message, options.envelopes, options.limits),
        principalOf(pending),
      );
      const found = await ledger.offerStanding(key, offer.ref, offer.envelope.kind);
      const incarnation = await incarnationFor(offer, found, options);
      const permitted = judgePermission(offer, found, options);
      const standing = await judgeStanding(offer, found, permitted, options);
      const content = await judgeContent(offer, standing, options);
      const clarifications = await clarificationsOf(pending, permitted.received);
      const checked = { standing, content, clarifications, again: true };
      // What it asks or leaves to somebody, the person has decided.
      await runChecks(checked, [permitted.received.contract.accept], options).catch(asError);
      await decisions.accept(offer, { standing, content, incarnation, decidedBy });
      return decided(key, 'accepted');
    },

    async rejectPending(input: RejectPendingInput): Promise<DecisionRow> {
      checkArguments('rejectPending', input);
      const { key, code, reason, hint } = input;
      const decidedBy = personOwner(input.person, identity.url);
      checkReason(reason);
      const pending = await undecided(key);
      const codes = options.received(pending.contract)?.contract.codes ?? {};
      const known = isErrorCode(code) ? ERROR_TABLE[code].cls === 'rejection' : Object.hasOwn(codes, code);
      if (!known) {
        throw new HoldfastError(
          'usage',
          `The code ${code} is neither a rejection in the error table nor one that ${pending.contract} declares.`,
        );
      }
      const { ref, digest, kind, toAgent } = pending;
      const delivery: Delivery = { key, ref, digest, principal: principalOf(pending) };
      const rejection = { code, reason, ...(hint === undefined ? {} : { hint }) };
      const from = { kind, toAgent, incarnation: null };
      await decisions.refuse(delivery, rejection, { from, decidedBy });
      return decided(key, 'rejected');
    },

    async listPending(tenant, filter = {}) {
      return ledger.listPending(tenant, { ...filter, toAgent: identity.url });
    },
  };
}

/** The contract's own check refuses what the person would accept: nothing is decided. */
function asError(error: unknown): never {
  if (!(error instanceof ContractRefusal)) throw error;
  const { code, reason, fields } = error.rejection;
  throw new HoldfastError('contract_refused', reason, { data: { code }, ...(fields && { fields }) });
}
