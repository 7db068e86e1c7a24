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
import { faultPoint } from '../faults/index.js';
import {
  attemptName,
  type DecisionRow,
  type LedgerStore,
  type Transfer,
  type WithdrawCommand,
} from '../ledger/index.js';
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
  type LedgerAnnouncement,
  type LedgerAnswer,
  MAX_CONTROL_DECISIONS,
  MAX_CONTROL_RECEIPTS,
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
    | 'getPending'
    | 'findPending'
    | 'findDecision'
    | 'listDecisions'
    | 'getOffer'
    | 'getKind'
    | 'voidOffer'
    | 'withdraw'
    | 'hearIncarnation'
    | 'listReceipts'
  >;
  /** URL of this agent. */
  readonly self: string;
  /** In which its own cases are. */
  readonly tenant: string;
  readonly peers: PeerDirectory;
  readonly receiver: Pick<Receiver, 'isDeciding' | 'changed'>;
  readonly logger: Logger;
  /** A change of owner as its receipt proves it. @throws provenance_unknown, provenance_invalid, peer_unreachable */
  readTransfer(receipt: string, ref: CaseRef): Promise<Transfer>;
  /** Called with the URL of a peer that has announced itself. */
  onAnnounced?(peer: string): void;
}

/**
 * Answers the control messages of peers. Whatever they name is looked for under the keys of who asks: tenant and sender are those of
 * the authenticated principal, so that nothing of anybody else's can be found, closed or told from what does not exist.
 */
export function createControl(options: ControlOptions): ControlReceiver {
  const { ledger, peers, receiver, logger, self, tenant, onAnnounced } = options;
  async function answer(message: Message, principal: Principal): Promise<Message> {
    const request = parseControlRequest(message);
    // It goes on, and what it does stands; only nobody waits for it any longer.
    const late = () => new HoldfastError('outcome_unknown');
    const document = await inTime(CONTROL_LIMIT_MS, carryOut(request, principal), late);
    return controlMessage(document, 'ROLE_AGENT');
  }

  function carryOut(request: ControlRequest, principal: Principal): Promise<ControlAnswer> {
    if (request.verb === 'handoff.withdraw') return withdraw(request, principal);
    if (request.verb === 'ledger.announce') return hear(request, principal);
    return 'case_id' in request ? queryCase(request, principal) : queryAttempt(request, principal);
  }

  async function queryAttempt(request: AttemptQuery, principal: Principal): Promise<AttemptAnswer> {
    const key = keyOf(request, principal);
    // Asked first: what is decided in between is then found.
    const deciding = receiver.isDeciding(key);
    const decision = await ledger.findDecision(key);
    if (decision !== null) return decided(request, decision);
    checkPermitted(principal);
    const pending = await ledger.getPending(key);
    if (pending === null) return { ...request, state: deciding ? 'deciding' : 'none' };
    // By now.
    if (pending.state === 'decided') return queryAttempt(request, principal);
    const open = pending.clarifications.find(({ answer }) => answer === null);
    return {
      ...request,
      state: 'deciding',
      task_id: pending.taskId,
      ...(open === undefined ? {} : { question: { n: open.n, question: open.question } }),
    };
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
        await tellTakeover({ key, ref, answer, principal, toAgent: self }, jws);
      }
      return decided(asked, stored);
    }
    checkPermitted(principal);
    // In a shared ledger the sender's own offer may stand here; one that speaks plain HTTP has written none.
    const offer = await ledger.getOffer(key);
    const kind = offer && (await ledger.getKind(tenant, offer.kind));
    faultPoint('W3.before_tombstone');
    const result =
      kind?.mode === 'shared'
        ? await ledger.voidOffer({ key, writer: key.sender, reason: 'by-message', expired: false, answer })
        : await ledger.withdraw({ key, ref, answer, principal, toAgent: self });
    if (result.outcome === 'conflict') throw new HoldfastError('internal');
    faultPoint('W3.after_tombstone');
    const { handoffId, attempt } = key;
    if (result.outcome === 'stored') logger.info({ handoff: handoffId, attempt }, 'handoff withdrawn');
    const { taskId } = result.decision;
    if (taskId !== null) receiver.changed(taskId);
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

  /**
   * Stored first, then read: what is accepted from the peer afterwards was offered under this incarnation, or is named in `open`; and what
   * was accepted before is among the receipts.
   */
  async function hear(
    { verb, incarnation, since, open, cursor }: LedgerAnnouncement,
    principal: Principal,
  ): Promise<LedgerAnswer> {
    const { agent: peer } = principal;
    await ledger.hearIncarnation({
      tenant: principal.tenant,
      agent: self,
      peer,
      incarnation,
      since,
      open: open.map(({ root, handoff_id: handoffId, attempt }) => attemptName({ root, handoffId, attempt })),
    });
    const { receipts, next } = await ledger.listReceipts(peer, {
      tenants: [...new Set([principal.tenant, tenant])],
      after: cursor ?? null,
      limit: MAX_CONTROL_RECEIPTS,
    });
    logger.info({ peer, incarnation, receipts: receipts.length }, 'a peer has begun a new incarnation');
    if (cursor === undefined) onAnnounced?.(peer);
    return { verb, incarnation, receipts, ...(next === null ? {} : { next }) };
  }

  /** What is stored is told to whom it was told before; beyond that only a peer that may hand something over is served. */
  function checkPermitted({ agent }: Principal): void {
    const peer = peers.find(agent);
    if (!peer || peer.contracts.length === 0 || peer.skills.length === 0) {
      throw new HoldfastError('peer_not_allowed');
    }
  }

  async function withdrawTask(taskId: string, principal: Principal): Promise<void> {
    const pending = await ledger.findPending(principal.tenant, taskId);
    if (pending === null || pending.key.sender !== principal.agent) return;
    const { root, handoffId: handoff_id, attempt } = pending.key;
    await withdraw({ verb: 'handoff.withdraw', root, handoff_id, attempt }, principal);
  }

  return { answer, withdrawTask };
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
