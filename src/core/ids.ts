import { randomFillSync } from 'node:crypto';
import { HoldfastError } from './errors.js';

/**
 * A case is identified by (tenant, root, case_id), never by an A2A id.
 * `root` is the URL of the node whose ledger opened it, so that two organisations' `CASE-7001` never collide.
 */
export interface CaseRef {
  readonly tenant: string;
  readonly root: string;
  readonly caseId: string;
}

export function isSameCase(a: CaseRef, b: CaseRef): boolean {
  return a.tenant === b.tenant && a.root === b.root && a.caseId === b.caseId;
}

/** The key under which a receiver decides one attempt of one offer, once. */
export interface AcceptanceKey {
  readonly tenant: string;
  readonly root: string;
  /** The authenticated sender, never the `from_agent` of a body. */
  readonly sender: string;
  readonly handoffId: string;
  readonly attempt: number;
}

/** No colon: a handoff id is `case_id:epoch`, and must split in one way only. */
export const CASE_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

export function handoffIdOf(caseId: string, epoch: number): string {
  return `${caseId}:${epoch + 1}`;
}

/** The case that a handoff id is about. */
export function caseIdOf(handoffId: string): string {
  return handoffId.slice(0, Math.max(0, handoffId.lastIndexOf(':')));
}

export function messageIdOf(handoffId: string, attempt: number): string {
  return `${handoffId}:${attempt}`;
}

/** Of the message that answers question `n` about an attempt. */
export function answerIdOf(handoffId: string, attempt: number, n: number): string {
  return `${messageIdOf(handoffId, attempt)}:answer-${n}`;
}

const ID_BYTES = 15;
/** Randomness is drawn for many ids at once: to ask for it costs more than to make it. Each byte is used once. */
const drawn = Buffer.alloc(256 * ID_BYTES);
let used = drawn.length;

/** A fresh id such as `work_4mZ…`: 120 random bits, never chosen by a model or a peer. */
export function newId(prefix: string): string {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  used += ID_BYTES;
  return `${prefix}_${drawn.toString('base64url', used - ID_BYTES, used)}`;
}

/**
 * The one spelling of an agent's or node's URL: http(s), lower-case host, no credentials, query, fragment or trailing slash.
 * @throws usage when it is no such URL
 */
export function normalizeAgentUrl(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new HoldfastError('usage', `Not a URL: ${JSON.stringify(text.slice(0, 200))}`);
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new HoldfastError('usage', 'An agent URL starts with https:// (or http:// for loopback).');
  }
  if (url.username || url.password || url.search || url.hash) {
    throw new HoldfastError('usage', 'An agent URL has no credentials, query or fragment.');
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
