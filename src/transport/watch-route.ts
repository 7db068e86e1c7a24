import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  type Clock,
  HoldfastError,
  isJsonObject,
  type JsonValue,
  type Limits,
  type Logger,
  parseStrictJson,
} from '../core/index.js';
import type { LedgerStore, TaskWatch } from '../ledger/index.js';
import { readBody } from './body.js';
import { A2A_TYPE, JSON_TYPE, sendJson } from './respond.js';

/** Between the time stamp of a notification and now, either way, milliseconds. */
const TOLERANCE_MS = 5 * 60_000;
const WATCH_ID = /^watch_[A-Za-z0-9_-]{1,64}$/;
/** Without a full stop, so that what is signed can be read in one way only. */
const NOTIFICATION_ID = /^[\x21-\x2d\x2f-\x7e]{1,256}$/;
/** Signatures of one notification that are looked at: one for each secret while a sender changes it. */
const MAX_SIGNATURES = 4;

export interface WatchRouteOptions {
  /** URL of the agent that watches. */
  readonly agent: string;
  readonly ledger: Pick<LedgerStore, 'getWatch' | 'isHeard' | 'hear'>;
  readonly clock: Clock;
  readonly limits: Limits;
  readonly logger: Logger;
  /** Reads the task. What a notification says is never taken for what is so. */
  readonly onNews: (watch: TaskWatch) => Promise<void>;
}

type Refusal = 'watch' | 'token' | 'id' | 'timestamp' | 'signature';

function same(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

function hasToken({ tokenHash }: TaskWatch, authorization: string | undefined): boolean {
  const token = /^Bearer (\S+)$/i.exec(authorization ?? '')?.[1] ?? '';
  return same(createHash('sha256').update(token).digest(), Buffer.from(tokenHash, 'hex'));
}

function isSigned(watch: TaskWatch, signed: string, body: Uint8Array, header: string): boolean {
  const mac = createHmac('sha256', Buffer.from(watch.secret, 'base64')).update(signed).update(body).digest();
  const signatures = header.split(' ').slice(0, MAX_SIGNATURES);
  return signatures.some((one) => one.startsWith('v1,') && same(mac, Buffer.from(one.slice(3), 'base64')));
}

/** Of which task a StreamResponse tells; `null` where it is none. */
function taskOf(document: JsonValue): string | null {
  if (!isJsonObject(document)) return null;
  const { task, statusUpdate, artifactUpdate, message } = document;
  const given = [task, statusUpdate, artifactUpdate, message].filter((one) => one !== undefined);
  const [one] = given;
  if (given.length !== 1 || !isJsonObject(one)) return null;
  const id = one === task ? one.id : one.taskId;
  return typeof id === 'string' ? id : null;
}

/**
 * Takes notifications of watched tasks. Each proves by its token and by its signature over id, time stamp and raw body that it comes from
 * where the watch was made; what it leads to is one read of the task, and an id that was heard leads to nothing more. Who cannot prove it learns
 * nothing, not even whether there is such a watch.
 */
export function createWatchRoute(options: WatchRouteOptions) {
  const { agent, ledger, clock, limits, logger, onNews } = options;
  const underWay = new Map<string, Promise<void>>();

  function refuse(watchId: string, why: Refusal): never {
    logger.warn({ watch: WATCH_ID.test(watchId) ? watchId : null, why }, 'a notification was refused');
    throw new HoldfastError('unauthenticated');
  }

  async function read(watch: TaskWatch, notificationId: string): Promise<void> {
    if (await ledger.isHeard(watch.watchId, notificationId)) return;
    await onNews(watch);
    // Only now: what could not be read is sent again.
    await ledger.hear(watch.watchId, notificationId);
  }

  /** The same notification twice at the same time is one. */
  function readOnce(watch: TaskWatch, notificationId: string): Promise<void> {
    const key = `${watch.watchId} ${notificationId}`;
    const before = underWay.get(key);
    if (before !== undefined) return before;
    const reading = read(watch, notificationId).finally(() => underWay.delete(key));
    underWay.set(key, reading);
    return reading;
  }

  return async (request: IncomingMessage, response: ServerResponse, watchId: string): Promise<void> => {
    const { headers } = request;
    const watch = WATCH_ID.test(watchId) ? await ledger.getWatch(watchId) : null;
    if (watch === null || watch.agent !== agent) return refuse(watchId, 'watch');
    if (!hasToken(watch, headers.authorization)) return refuse(watchId, 'token');
    const id = String(headers['webhook-id'] ?? '');
    if (!NOTIFICATION_ID.test(id)) return refuse(watchId, 'id');
    const timestamp = String(headers['webhook-timestamp'] ?? '');
    const age = /^\d{1,12}$/.test(timestamp) ? clock.now().getTime() - Number(timestamp) * 1000 : Number.NaN;
    if (!(Math.abs(age) <= TOLERANCE_MS)) return refuse(watchId, 'timestamp');
    const body = await readBody(request, limits, [A2A_TYPE, JSON_TYPE]);
    const signature = String(headers['webhook-signature'] ?? '');
    if (!isSigned(watch, `${id}.${timestamp}.`, body, signature)) return refuse(watchId, 'signature');
    if (taskOf(parseStrictJson(body, limits)) !== watch.taskId) {
      logger.warn({ watch: watchId, why: 'task' }, 'a notification was refused');
      throw new HoldfastError('message_invalid', 'The notification is not of the task that is watched.');
    }
    await readOnce(watch, id);
    sendJson(response, 200, {});
  };
}
