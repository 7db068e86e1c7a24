import { HoldfastError } from '../core/index.js';
import { parseReceiptPart, parseRejectionPart } from '../envelope/index.js';
import type { LedgerStore } from '../ledger/index.js';
import type { ControlDecision } from '../protocol/index.js';
import type { PeerDirectory, PeerKeySource } from '../trust/index.js';
import { claimsFor, verifyPart } from './conclude.js';
import type { PeerDecision, QueryInput, QueryResult } from './model.js';
import type { PeerClient } from './port.js';

export interface InquiryOptions {
  readonly self: string;
  readonly tenant: string;
  readonly ledger: Pick<LedgerStore, 'getOffer'>;
  readonly peers: PeerDirectory;
  readonly keys: PeerKeySource;
  readonly client: PeerClient;
}

/**
 * Asks a receiver what it has decided about offers of this agent. It changes nothing on either side, and that nothing is stored now
 * settles nothing.
 * @throws peer_unknown, peer_unreachable, outcome_unknown, peer_error; receipt_invalid where an acceptance does not verify
 */
export async function queryPeer(input: QueryInput, options: InquiryOptions): Promise<QueryResult> {
  const { to, root } = input;
  if (options.peers.find(to) === null)
    throw new HoldfastError('peer_unknown', `The peer ${to} is not configured.`);
  const verb = 'handoff.query' as const;
  if ('caseId' in input) {
    const answer = await options.client.control(to, { verb, root, case_id: input.caseId });
    const decisions: PeerDecision[] = [];
    for (const one of answer.decisions) decisions.push(await read(one, input.caseId, input, options));
    return { state: decisions.length > 0 ? 'decided' : 'none', decisions, more: answer.more };
  }
  const { handoffId, attempt } = input;
  const answer = await options.client.control(to, { verb, root, handoff_id: handoffId, attempt });
  const decisions = answer.decision ? [await read(answer.decision, undefined, input, options)] : [];
  return { state: answer.state, decisions, more: false };
}

/** One decision, with its answer read strictly and held against what the attempt is. */
async function read(
  decision: ControlDecision,
  caseId: string | undefined,
  { to, root }: QueryInput,
  options: InquiryOptions,
): Promise<PeerDecision> {
  const { handoff_id: handoffId, attempt, verdict, decided_at: decidedAt, answer } = decision;
  const part = verdict === 'accepted' ? parseReceiptPart(answer) : parseRejectionPart(answer);
  const about = {
    root,
    handoff_id: handoffId,
    attempt,
    ...(caseId === undefined ? {} : { case_id: caseId }),
  };
  for (const [name, value] of Object.entries(about)) {
    if (part[name as keyof typeof about] === value) continue;
    throw new HoldfastError('peer_error', 'The peer answered with a decision about another attempt.');
  }
  const decided = { handoffId, attempt, decidedAt };
  if (part.accepted) {
    const key = { tenant: options.tenant, root, sender: options.self, handoffId, attempt };
    const offer = await options.ledger.getOffer(key);
    const expected = offer ? claimsFor(offer) : { ...about, iss: to, to_agent: to, from_agent: options.self };
    await verifyPart(part, to, expected, options);
    const { epoch, work_item: workItem, receipt } = part;
    return { ...decided, verdict: 'accepted', epoch, workItem, receipt };
  }
  if (!part.final)
    throw new HoldfastError('peer_error', 'The peer calls a decision stored that is not final.');
  const { code, reason, fields, retryable, hint } = part;
  const rejected = { code, reason, fields, retryable, hint: hint ?? null };
  return { ...decided, ...rejected, verdict: verdict === 'withdrawn' ? 'withdrawn' : 'rejected' };
}
