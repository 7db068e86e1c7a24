import * as z from 'zod';
import { type ErrorCode, HoldfastError, MAX_FIELD_ERRORS } from '../core/index.js';
import * as form from './forms.js';
import { fieldsOf } from './problems.js';

/** What a receipt (JWS) states: who took over which case from whom, on which bytes. */
const receiptClaimsSchema = z.strictObject({
  /** The receiver's node. */
  iss: form.agentUrl,
  root: form.agentUrl,
  case_id: form.caseId,
  handoff_id: form.handoffId,
  attempt: form.positive,
  /** A person only where both are of the issuer: a change of owner within one node. */
  from_agent: form.owner,
  to_agent: form.owner,
  old_epoch: form.epoch,
  new_epoch: form.positive,
  /** SHA-256 (hex) of the canonical envelope. */
  digest: form.sha256,
  incarnation: form.opaqueId,
  /** Seconds since 1970. */
  iat: z.int().min(0),
  jti: form.opaqueId,
});

export const receiptPartSchema = z
  .strictObject({
    accepted: z.literal(true),
    root: form.agentUrl,
    case_id: form.caseId,
    handoff_id: form.handoffId,
    attempt: form.positive,
    /** The epoch from now on. */
    epoch: form.positive,
    work_item: form.opaqueId,
    /** Compact JWS over the receipt claims. */
    receipt: form.compactJws,
  })
  .meta({ title: 'Holdfast receipt part, version 1', description: 'Answers an offer that was accepted.' });

export const rejectionPartSchema = z
  .strictObject({
    accepted: z.literal(false),
    root: form.agentUrl.exactOptional(),
    case_id: form.caseId.exactOptional(),
    handoff_id: form.handoffId.exactOptional(),
    attempt: form.positive.exactOptional(),
    code: form.code,
    reason: form.text(2000),
    fields: z.array(z.strictObject({ path: form.text(500), problem: form.text(500) })).max(MAX_FIELD_ERRORS),
    /** Whether a corrected offer can be accepted. */
    retryable: z.boolean(),
    hint: form.text(500).exactOptional(),
    /** True only where the rejection is stored and closes the attempt. */
    final: z.boolean(),
  })
  .meta({ title: 'Holdfast rejection part, version 1', description: 'Answers an offer that was refused.' });

/** What an approval (JWS) states: which of its cases a person let their agent offer, to whom, and in which words. */
const approvalClaimsSchema = z.strictObject({
  /** The person's agent, which sends the offer. */
  iss: form.agentUrl,
  person: form.owner,
  root: form.agentUrl,
  case_id: form.caseId,
  handoff_id: form.handoffId,
  attempt: form.positive,
  to_agent: form.agentUrl,
  epoch: form.epoch,
  /** SHA-256 (hex) of the canonical envelope, but for the approval in it. */
  action: form.sha256,
  iat: z.int().min(0),
  jti: form.opaqueId,
});

export type ApprovalClaims = z.infer<typeof approvalClaimsSchema>;
export type ReceiptClaims = z.infer<typeof receiptClaimsSchema>;
export type ReceiptPart = z.infer<typeof receiptPartSchema>;
export type RejectionPart = z.infer<typeof rejectionPartSchema>;

function parse<T>(schema: z.ZodType<T>, value: unknown, code: ErrorCode, what: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new HoldfastError(code, `The ${what} does not have the required form.`, {
    fields: fieldsOf(result.error),
  });
}

/** @throws receipt_invalid */
export function parseReceiptPart(value: unknown): ReceiptPart {
  return parse(receiptPartSchema, value, 'receipt_invalid', 'receipt part');
}

/** The claims of a receipt whose signature was verified. @throws receipt_invalid */
export function parseReceiptClaims(value: unknown): ReceiptClaims {
  return parse(receiptClaimsSchema, value, 'receipt_invalid', 'receipt');
}

/** The claims of an approval whose signature was verified. @throws receipt_invalid */
export function parseApprovalClaims(value: unknown): ApprovalClaims {
  return parse(approvalClaimsSchema, value, 'receipt_invalid', 'approval');
}

/** @throws peer_error */
export function parseRejectionPart(value: unknown): RejectionPart {
  return parse(rejectionPartSchema, value, 'peer_error', 'rejection part');
}
