import { createHash, randomBytes } from 'node:crypto';
import { HoldfastError, isHoldfastError, type Logger, newId, normalizeAgentUrl } from '../core/index.js';
import type { LedgerStore, TaskWatch } from '../ledger/index.js';
import { WATCH_PATH } from '../protocol/index.js';
import type { TaskClient } from '../transport/index.js';
import type { PeerDirectory } from '../trust/index.js';

/** A task at a peer, as it was read there after a notification of it came. */
export interface TaskNews {
  readonly watchId: string;
  readonly peer: string;
  readonly taskId: string;
  /** The task as A2A has it on the wire. */
  readonly task: Readonly<Record<string, unknown>>;
}

/** What the agent does when a task that it watches has changed. It may be called more than once for one change. */
export type NewsHandler = (news: TaskNews) => Promise<void> | void;

export interface WatchesOptions {
  /** URL of this agent. */
  readonly agent: string;
  readonly ledger: Pick<LedgerStore, 'addWatch' | 'getWatch' | 'removeWatch'>;
  readonly client: TaskClient;
  readonly peers: PeerDirectory;
  readonly logger: Logger;
}

/** As long as a peer may try to deliver what it has to tell, and more, milliseconds. */
const WATCH_MS = 30 * 86_400_000;
const TOKEN_BYTES = 32;
const SECRET_BYTES = 32;

/** Tasks at peers that this agent made and wants to hear of. News is only ever a reason to read the task at the peer. */
export class Watches {
  readonly #options: WatchesOptions;
  readonly #handlers: NewsHandler[] = [];

  constructor(options: WatchesOptions) {
    this.#options = options;
  }

  handle(handler: NewsHandler): void {
    this.#handlers.push(handler);
  }

  /** @throws peer_unknown, not_found where the task is not this agent's; peer_error, peer_unreachable, outcome_unknown */
  async begin(peerUrl: string, taskId: string): Promise<TaskWatch> {
    const { agent, ledger, client, peers } = this.#options;
    const url = normalizeAgentUrl(peerUrl);
    const peer = peers.list().find((one) => one.url === url);
    if (peer === undefined) throw new HoldfastError('peer_unknown', undefined, { data: { peer: url } });
    // A peer shows a task to nobody but who made it.
    const task = await client.getTask(peer.url, taskId);
    if (task.id !== taskId) throw new HoldfastError('peer_error', 'The peer answered with another task.');
    const token = randomBytes(TOKEN_BYTES).toString('base64url');
    const secret = randomBytes(SECRET_BYTES).toString('base64');
    const watchId = newId('watch');
    const watch = await ledger.addWatch({
      tenant: peer.tenant,
      watchId,
      agent,
      peer: peer.url,
      taskId,
      tokenHash: createHash('sha256').update(token).digest('hex'),
      secret,
      lastsMs: WATCH_MS,
    });
    try {
      await client.createPush(peer.url, {
        tenant: '',
        id: watchId,
        taskId,
        url: `${agent}${WATCH_PATH}/${watchId}`,
        token: `whsec_${secret}`,
        authentication: { scheme: 'Bearer', credentials: token },
      });
      return watch;
    } catch (error) {
      await ledger.removeWatch(watch.tenant, watchId);
      throw error;
    }
  }

  /** What still comes is refused, whether or not the peer hears of it. */
  async end(watchId: string): Promise<void> {
    const { ledger, client, logger, agent } = this.#options;
    const watch = await ledger.getWatch(watchId);
    if (watch === null || watch.agent !== agent) return;
    await ledger.removeWatch(watch.tenant, watchId);
    try {
      await client.deletePush(watch.peer, watch.taskId, watchId);
    } catch (err) {
      const code = isHoldfastError(err) ? err.code : 'internal';
      logger.warn({ code, watch: watchId, err }, 'a peer was not told that a task is watched no more');
    }
  }

  /** Reads the task, and hands on what was read and not what was said. @throws busy where it cannot be read now */
  async read({ watchId, peer, taskId }: TaskWatch): Promise<void> {
    try {
      const task = await this.#options.client.getTask(peer, taskId);
      if (task.id !== taskId) throw new HoldfastError('peer_error', 'The peer answered with another task.');
      const news = { watchId, peer, taskId, task: { ...task } };
      for (const handler of this.#handlers) await handler(news);
    } catch (err) {
      const code = isHoldfastError(err) ? err.code : 'internal';
      this.#options.logger.warn(
        { code, watch: watchId, err },
        'a watched task could not be read; the peer tells of it again',
      );
      throw new HoldfastError('busy', undefined, { cause: err });
    }
  }
}
