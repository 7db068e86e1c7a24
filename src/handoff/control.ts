import {
  type AcceptanceKey,
  actsFor,
  type CaseRef,
  caseIdOf,
  ERROR_TABLE,
  HoldfastError,
  inTime,
  isHoldfastError,
  type JsonObject,
  type Logger,
} from '../core/index.js';
import type { DecisionRow, LedgerStore, Transfer, WithdrawCommand } from '../ledger/index.js';
import {
  type AttemptAnswer,
  type AttemptQuery,
  type CaseAnswer,
  type CaseQuery,
  CONTROL_LIMIT_MS,
  type ControlAnswer,
  type ControlDecision,
  type ControlRequest,
  controlMessage,
  MAX_CONTROL_DECISIONS,
  type Message,
  parseControlRequest,
  type WithdrawRequest,
} from '../protocol/index.js';
import type { PeerDirectory, Principal } from '../trust/index.js';
import { rejectionPart } from './answers.js';
import type { ControlReceiver, Receiver } from './port.js';

export interface ControlOptions {
  readonly ledger: Pick<
    LedgerStore,
    'findDecision' | 'listDecisions' | 'getOffer' | 'getKind' | 'voidOffer' | 'withdraw'
  >;
  readonly peers: PeerDirectory;
  readonly receiver: Pick<Receiver, 'isDeciding'>;
  readonly logger: Logger;
  /** A change of owner as its receipt proves it. @throws provenance_unknown, provenance_invalid, peer_unreachable */
  readTransfer(receipt: string, ref: CaseRef): Promise<Transfer>;
}

/**
 * Answers the control messages of peers. Whatever they name is looked for under the keys of who asks: tenant and sender are those of
 * the authenticated principal, so that nothing of anybody else's can be found, closed or told from what does not exist.
 */
export function createControl(options: ControlOptions): ControlReceiver {
  const { ledger, peers, receiver, logger } = options;
  async function answer(message: Message, principal: Principal): Promise<Message> {
    const request = parseControlRequest(message);
    // It goes on, and what it does stands; only nobody waits for it any longer.
    const late = () => new HoldfastError('outcome_unknown');
    const document = await inTime(CONTROL_LIMIT_MS, carryOut(request, principal), late);
    return controlMessage(document, 'ROLE_AGENT');
  }

  function carryOut(request: ControlRequest, principal: Principal): Promise<ControlAnswer> {
    if (request.verb === 'handoff.withdraw') return withdraw(request, principal);
    return 'case_id' in request ? queryCase(request, principal) : queryAttempt(request, principal);
  }

  async function queryAttempt(request: AttemptQuery, principal: Principal): Promise<AttemptAnswer> {
    const key = keyOf(request, principal);
    // Asked first: what is decided in between is then found.
    const deciding = receiver.isDeciding(key);
    const decision = await ledger.findDecision(key);
    if (decision !== null) return decided(request, decision);
    checkPermitted(principal);
    return { ...request, state: deciding ? 'deciding' : 'none' };
  }

  async function queryCase(request: CaseQuery, principal: Principal): Promise<CaseAnswer> {
    const ref: CaseRef = { tenant: principal.tenant, root: request.root, caseId: request.case_id };
    const found = await ledger.listDecisions(ref, principal.agent, MAX_CONTROL_DECISIONS + 1);
    if (found.length === 0) checkPermitted(principal);
    const decisions = found.slice(0, MAX_CONTROL_DECISIONS).map(toControl);
    return { ...request, decisions, more: found.length > decisions.length };
  }

  /** The ledger says who was first, the withdrawal or the decision: neither waits for the other. */
  async function withdraw(request: WithdrawRequest, principal: Principal): Promise<AttemptAnswer> {
    const { takeover: jws, ...asked } = request;
    const key = keyOf(asked, principal);
    const { tenant, root } = key;
    const ref: CaseRef = { tenant, root, caseId: caseIdOf(key.handoffId) };
    const rejection = { code: 'withdrawn', reason: ERROR_TABLE.withdrawn.meaning };
    const answer = JSON.stringify(rejectionPart(rejection, { key, ref }, true));
    const stored = await ledger.findDecision(key);
    if (stored !== null) {
      if (jws !== undefined && stored.verdict === 'accepted') {
        await tellTakeover({ key, ref, answer, principal }, jws);
      }
      return decided(asked, stored);
    }
    checkPermitted(principal);
    // In a shared ledger the sender's own offer may stand here; one that speaks plain HTTP has written none.
    const offer = await ledger.getOffer(key);
    const kind = offer && (await ledger.getKind(tenant, offer.kind));
    const result =
      kind?.mode === 'shared'
        ? await ledger.voidOffer({ key, writer: key.sender, reason: 'by-message', expired: false, answer })
        : await ledger.withdraw({ key, ref, answer, principal });
    if (result.outcome === 'conflict') throw new HoldfastError('internal');
    const { handoffId, attempt } = key;
    if (result.outcome === 'stored') logger.info({ handoff: handoffId, attempt }, 'handoff withdrawn');
    return decided(asked, result.decision);
  }

  /** What was accepted here was taken over by force there, before this was known: two may own the case, and the ledger closes it. */
  async function tellTakeover(command: WithdrawCommand, jws: string): Promise<void> {
    const { key, ref, principal } = command;
    const takeover = await options.readTransfer(jws, ref);
    if (actsFor(takeover.toAgent) !== principal.agent) throw new HoldfastError('control_invalid');
    try {
      await ledger.withdraw({ ...command, takeover });
    } catch (error) {
      // It was told before.
      if (!isHoldfastError(error) || error.code !== 'case_quarantined') throw error;
    }
    const { handoffId, attempt } = key;
    logger.error({ handoff: handoffId, attempt }, 'the sender took the case over by force: two may own it');
  }

  /** What is stored is told to whom it was told before; beyond that only a peer that may hand something over is served. */
  function checkPermitted({ agent }: Principal): void {
    const peer = peers.find(agent);
    if (!peer || peer.contracts.length === 0 || peer.skills.length === 0) {
      throw new HoldfastError('peer_not_allowed');
    }
  }

  return { answer };
}

function keyOf(
  { root, handoff_id: handoffId, attempt }: AttemptQuery | WithdrawRequest,
  { tenant, agent: sender }: Principal,
): AcceptanceKey {
  return { tenant, root, sender, handoffId, attempt };
}

function decided(request: AttemptQuery | WithdrawRequest, decision: DecisionRow): AttemptAnswer {
  return { ...request, state: 'decided', decision: toControl(decision) };
}

function toControl({ key, verdict, decidedAt, digest, taskId, answer }: DecisionRow): ControlDecision {
  return {
    handoff_id: key.handoffId,
    attempt: key.attempt,
    verdict: verdict === 'tombstone' ? 'withdrawn' : verdict,
    decided_at: decidedAt,
    ...(digest === null ? {} : { digest }),
    ...(taskId === null ? {} : { task_id: taskId }),
    answer: JSON.parse(answer) as JsonObject,
  };
}
