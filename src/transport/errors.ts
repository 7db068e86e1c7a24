import {
  A2AError,
  type ErrorDetail,
  restStatusFor,
  toJsonRpcError,
  toRestErrorBody,
} from '@a2a-js/sdk/errors';
import {
  ERROR_TABLE,
  type ErrorCode,
  HoldfastError,
  isHoldfastError,
  MAX_FIELD_ERRORS,
} from '../core/index.js';
import { ERROR_DOMAIN } from '../protocol/index.js';

/** An error as a peer sees it, before a binding gives it its form. */
export interface WireError {
  readonly http: number;
  readonly rpc: number;
  /** Name of the google.rpc code. */
  readonly status: string;
  readonly message: string;
  readonly details: readonly object[];
  readonly retryAfterSeconds?: number;
  /** Whether the JSON-RPC binding shows the HTTP status too, or answers 200 as for any error of the protocol. */
  readonly showHttp: boolean;
}

type Mapping = readonly [http: number, rpc: number, status: string, retryAfterSeconds?: number];

const BAD_REQUEST: Mapping = [400, -32602, 'INVALID_ARGUMENT'];
const INTERNAL: Mapping = [500, -32603, 'INTERNAL'];

const BY_CODE: Partial<Record<ErrorCode, Mapping>> = {
  unauthenticated: [401, -32600, 'UNAUTHENTICATED'],
  evidence_revoked: [410, -32602, 'FAILED_PRECONDITION'],
  not_found: [404, -32602, 'NOT_FOUND'],
  body_too_large: [413, -32600, 'INVALID_ARGUMENT'],
  json_invalid: [400, -32700, 'INVALID_ARGUMENT'],
  json_too_complex: [400, -32600, 'INVALID_ARGUMENT'],
  message_invalid: BAD_REQUEST,
  answer_invalid: BAD_REQUEST,
  control_invalid: BAD_REQUEST,
  verb_unknown: BAD_REQUEST,
  duplicate_conflict: [409, -32602, 'ALREADY_EXISTS'],
  rate_limited: [429, -32603, 'RESOURCE_EXHAUSTED', 1],
  // Not a failure: what was asked for may have happened.
  outcome_unknown: [504, -32603, 'DEADLINE_EXCEEDED', 1],
  busy: [503, -32603, 'UNAVAILABLE', 1],
  ledger_unavailable: [503, -32603, 'UNAVAILABLE', 5],
  case_quarantined: [409, -32602, 'FAILED_PRECONDITION'],
  // A refusal that the identical request can outlive.
  effect_in_flight: [409, -32603, 'ABORTED', 1],
  peers_unanswered: [409, -32603, 'ABORTED', 1],
  incarnation_superseded: [409, -32603, 'ABORTED', 1],
  task_conflict: [409, -32603, 'ABORTED', 1],
};

function mappingOf(code: ErrorCode): Mapping {
  const known = BY_CODE[code];
  if (known !== undefined) return known;
  switch (ERROR_TABLE[code].cls) {
    case 'rejection':
      return BAD_REQUEST;
    case 'refusal':
      return [409, -32602, 'FAILED_PRECONDITION'];
    default:
      return INTERNAL;
  }
}

function detailsOf(error: HoldfastError): object[] {
  const metadata = Object.entries(error.data).filter(([, value]) => value !== null);
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: error.code.toUpperCase(),
    domain: ERROR_DOMAIN,
    ...(metadata.length === 0
      ? {}
      : { metadata: Object.fromEntries(metadata.map(([key, value]) => [key, String(value)])) }),
  };
  if (error.fields.length === 0) return [info];
  const fieldViolations = error.fields
    .slice(0, MAX_FIELD_ERRORS)
    .map(({ path, problem }) => ({ field: path, description: problem }));
  return [info, { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations }];
}

/** What a peer may know of an error. Anything that is not meant for it becomes `internal`. */
export function toWireError(error: unknown): WireError {
  if (error instanceof A2AError) {
    const http = restStatusFor(error);
    return {
      http,
      rpc: toJsonRpcError(error).code,
      status: toRestErrorBody(error, http).error.status,
      message: error.message,
      details: [error.toErrorInfo() as ErrorDetail],
      showHttp: false,
    };
  }
  const known = isHoldfastError(error) ? error : new HoldfastError('internal');
  const [http, rpc, status, retryAfterSeconds] = mappingOf(known.code);
  // 5xx texts may come from deep inside; the table's sentence is all that leaves.
  const shown =
    http >= 500 ? new HoldfastError(http === 503 || http === 504 ? known.code : 'internal') : known;
  return {
    http,
    rpc,
    status,
    message: shown.message,
    details: detailsOf(shown),
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    showHttp: http !== 400 && http !== 404,
  };
}

export function toRestBody(error: WireError): object {
  const { http, status, message, details } = error;
  return { error: { code: http, status, message, details } };
}

export function toRpcBody(error: WireError, id: string | number | null): object {
  return { jsonrpc: '2.0', id, error: { code: error.rpc, message: error.message, data: error.details } };
}
