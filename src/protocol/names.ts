/** Every name that crosses the wire, once. */

export const EXTENSION_URI = 'urn:holdfast:handoff:v2';
/** Domain of our google.rpc.ErrorInfo; the protocol's own errors use `a2a-protocol.org`. */
export const ERROR_DOMAIN = 'holdfast';

export const DEFAULT_VENDOR = 'holdfast';
export const RECEIPT_MEDIA_TYPE = 'application/vnd.holdfast.receipt.v1+json';
export const REJECTION_MEDIA_TYPE = 'application/vnd.holdfast.rejection.v1+json';
export const QUESTION_MEDIA_TYPE = 'application/vnd.holdfast.question.v1+json';
export const ANSWER_MEDIA_TYPE = 'application/vnd.holdfast.answer.v1+json';
export const CONTROL_MEDIA_TYPE = 'application/vnd.holdfast.control.v1+json';

export const JWKS_PATH = '/.well-known/jwks.json';
export const AGENT_CARD_PATH = '/.well-known/agent-card.json';
export const EVIDENCE_PATH = '/evidence';
/** Where notifications of tasks at peers arrive, below the agent's URL. */
export const WATCH_PATH = '/push';
/** Where the JSON-RPC binding is served, below the agent's URL. */
export const JSON_RPC_PATH = '/a2a';
/** Prefix of the HTTP+JSON binding, below the agent's URL. */
export const REST_PATH = '/a2a/rest';

export const A2A_VERSION = '1.0';

/** `application/vnd.<vendor>.handoff.v<version>+json` */
export function envelopeMediaType(version: number, vendor: string = DEFAULT_VENDOR): string {
  return `application/vnd.${vendor}.handoff.v${version}+json`;
}
