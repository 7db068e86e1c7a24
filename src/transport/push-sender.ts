import { createHmac } from 'node:crypto';
import { type Clock, isHoldfastError } from '../core/index.js';
import type { DuePush } from '../ledger/index.js';
import type { GuardedFetch } from './guarded-fetch.js';
import { signingSecret } from './push-config.js';
import { A2A_TYPE } from './respond.js';

/** One attempt, from the first look at the URL to the status of the answer, milliseconds. */
const TIMEOUT_MS = 15_000;
/** More than that nobody may ask us to wait, milliseconds. */
const MAX_RETRY_AFTER_MS = 86_400_000;

/** What came of one attempt. `reason`: a short code for people, never what the endpoint said. */
export type PushOutcome =
  | { readonly what: 'delivered' }
  | { readonly what: 'gone' }
  | { readonly what: 'failed'; readonly reason: string; readonly retryAfterMs: number };

export type SendPush = (due: DuePush) => Promise<PushOutcome>;

/** The id of a notification is the same at every attempt, so that its receiver can tell one that it has. Without a full stop, which ends it where it is signed. */
export function notificationIdOf({ notification: { pushId, seq } }: DuePush): string {
  return `${pushId}-${seq}`;
}

/** `v1,` and the HMAC-SHA256 over `id.timestamp.body`, as Standard Webhooks has it. */
function sign(secret: Uint8Array, id: string, timestamp: string, body: string): string {
  return `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

function headersFor(due: DuePush, now: Date): Record<string, string> {
  const { token, scheme, credentials } = due.push;
  const id = notificationIdOf(due);
  const timestamp = String(Math.floor(now.getTime() / 1000));
  const secret = signingSecret(token);
  return {
    'content-type': A2A_TYPE,
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(secret === null ? {} : { 'webhook-signature': sign(secret, id, timestamp, due.notification.body) }),
    // A secret to sign with proves itself without being sent.
    ...(token === null || secret !== null ? {} : { 'x-a2a-notification-token': token }),
    ...(scheme === null ? {} : { authorization: `${scheme} ${credentials ?? ''}`.trimEnd() }),
  };
}

/** Seconds or a date; 0 where there is none that can be read. */
function retryAfterMs(header: string | undefined, now: Date): number {
  if (header === undefined) return 0;
  const ms = /^\d{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - now.getTime();
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

function reasonOf(error: unknown): string {
  if (!isHoldfastError(error)) return 'internal';
  const { reason } = error.data;
  return typeof reason === 'string' ? `${error.code}:${reason}` : error.code;
}

/** Sends one notification to its endpoint, wherever the guarded fetcher lets it go; any answer of 200 to 299 is its receipt. */
export function createPushSender(
  guarded: Pick<GuardedFetch, 'request'>,
  clock: Clock,
  timeoutMs: number = TIMEOUT_MS,
): SendPush {
  return async (due) => {
    try {
      const answer = await guarded.request(due.push.url, {
        method: 'POST',
        headers: headersFor(due, clock.now()),
        body: due.notification.body,
        maxBytes: 0,
        timeoutMs,
        statusOnly: true,
      });
      answer.discard();
      const { status, headers } = answer;
      if (status >= 200 && status < 300) return { what: 'delivered' };
      if (status === 410) return { what: 'gone' };
      const waitMs = retryAfterMs(headers['retry-after'], clock.now());
      return { what: 'failed', reason: `http_${status}`, retryAfterMs: waitMs };
    } catch (error) {
      return { what: 'failed', reason: reasonOf(error), retryAfterMs: 0 };
    }
  };
}
