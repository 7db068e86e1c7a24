import type { JsonObject, JsonValue } from '../core/index.js';
import { ERROR_DOMAIN, RECEIPT_MEDIA_TYPE, REJECTION_MEDIA_TYPE, type Task } from '../protocol/index.js';
import type { Refused } from './expectation.js';

interface Answer {
  readonly status: number;
  /** A JSON-RPC answer. */
  readonly body: JsonObject;
}

interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: readonly { readonly reason?: string; readonly domain?: string }[];
}

/** How an answer to SendMessage says no, or `null` where it does not. */
export function readRefusal(answer: Answer): Refused | null {
  const error = answer.body.error as unknown as RpcError | undefined;
  if (error) return { code: codeOf(error) };
  const part = partOf(answer, REJECTION_MEDIA_TYPE);
  if (!part) return null;
  const { code, final, fields } = part as { code: string; final: boolean; fields: JsonValue[] };
  return { code, final, ...(fields.length > 0 ? { fields: fields.length } : {}) };
}

/** The receipt (JWS) of an acceptance, or `null`. */
export function readReceipt(answer: Answer): string | null {
  const part = partOf(answer, RECEIPT_MEDIA_TYPE);
  return typeof part?.receipt === 'string' ? part.receipt : null;
}

/** Errors carry the code of the table in upper case, as A2A's ErrorInfo wants it. */
function codeOf(error: RpcError): string {
  const reason = error.data?.find((detail) => detail.domain === ERROR_DOMAIN)?.reason;
  return reason?.toLowerCase() ?? `rpc_${error.code}`;
}

function partOf(answer: Answer, mediaType: string): JsonObject | null {
  const result = answer.body.result as unknown as { task?: Task } | undefined;
  const parts = (result?.task?.artifacts ?? []).flatMap((artifact) => artifact.parts);
  const data = parts.find((part) => part.mediaType === mediaType)?.data;
  return (data as JsonObject | undefined) ?? null;
}
