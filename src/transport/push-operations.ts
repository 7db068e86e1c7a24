import {
  type DeleteTaskPushNotificationConfigRequest,
  type GetTaskPushNotificationConfigRequest,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import { RequestMalformedError, TaskNotFoundError } from '@a2a-js/sdk/errors';
import { isHoldfastError } from '../core/index.js';
import type { LedgerStore, NewPush } from '../ledger/index.js';
import type { Principal } from '../trust/index.js';
import { type PushReader, readPush, shownPush } from './push-config.js';
import { wholeNumber } from './task-list.js';
import { requireTask } from './task-runner.js';
import type { LedgerTaskStore } from './task-store.js';

export interface PushOperationsOptions extends PushReader {
  readonly tasks: LedgerTaskStore;
  readonly ledger: Pick<LedgerStore, 'addPush' | 'listPushes' | 'removePush'>;
}

/** A2A's operations on push notification configurations. Each looks for the task first, as its peer sees it. */
export class PushOperations {
  readonly #options: PushOperationsOptions;

  constructor(options: PushOperationsOptions) {
    this.#options = options;
  }

  /** @throws message_invalid, push_limit */
  async create(
    params: TaskPushNotificationConfig,
    principal: Principal,
  ): Promise<TaskPushNotificationConfig> {
    const { task } = await requireTask(this.#options.tasks, principal, params.taskId);
    const push = await readPush(this.#options, params, { inline: false });
    const { tenant, agent: peer } = principal;
    return shownPush(await this.#options.ledger.addPush({ tenant, peer, taskId: task.id, push }));
  }

  async get(
    params: GetTaskPushNotificationConfigRequest,
    principal: Principal,
  ): Promise<TaskPushNotificationConfig> {
    const { configs } = await this.list({ ...params, pageSize: 0, pageToken: '' }, principal);
    const found = configs.find(({ id }) => id === params.id);
    if (found === undefined) throw new TaskNotFoundError('The task has no such push configuration.');
    return found;
  }

  /** All on one page: there are few. */
  async list(
    params: ListTaskPushNotificationConfigsRequest,
    principal: Principal,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    const { task } = await requireTask(this.#options.tasks, principal, params.taskId);
    wholeNumber('pageSize', params.pageSize, 0);
    if (params.pageToken) throw new RequestMalformedError('pageToken is not one that this agent gave out');
    const found = await this.#options.ledger.listPushes(principal.tenant, task.id);
    return { configs: found.map(shownPush), nextPageToken: '' };
  }

  async delete(params: DeleteTaskPushNotificationConfigRequest, principal: Principal): Promise<void> {
    const { task } = await requireTask(this.#options.tasks, principal, params.taskId);
    const { tenant } = principal;
    await this.#options.ledger.removePush({ tenant, taskId: task.id, configId: params.id });
  }

  /** A configuration that came with a message, read before anything is decided. */
  async read(given: TaskPushNotificationConfig | undefined): Promise<NewPush | undefined> {
    return given === undefined ? undefined : readPush(this.#options, given, { inline: true });
  }

  /** Whoever asks with an offer hears of its task as it is first. */
  async addToOffer(push: NewPush, task: Task, { tenant, agent: peer }: Principal): Promise<void> {
    const event = JSON.stringify(StreamResponse.toJSON({ payload: { $case: 'task', value: task } }));
    try {
      await this.#options.ledger.addPush({ tenant, peer, taskId: task.id, push, event });
    } catch (error) {
      // A rejection that is not final is not stored: there is no task to hear of.
      if (!isHoldfastError(error) || error.code !== 'not_found') throw error;
    }
  }
}
