import type { Task as SdkTask } from '@a2a-js/sdk';
import { StreamResponse, TaskState, taskStateToJSON } from '@a2a-js/sdk';
import { HoldfastError, isHoldfastError, toUtc } from '../core/index.js';
import type { Announcement, LedgerStore, NewPush, TaskFilter, TaskRow } from '../ledger/index.js';
import type { Task } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';
import { taskFromWire, taskToWire } from './codec.js';
import { agentText, statusResponse } from './task-events.js';

/** Metadata under which a stored task names the process that works on it; never leaves the store. */
const RUN_KEY = 'urn:holdfast:run';
const ACTIVE: readonly string[] = [
  taskStateToJSON(TaskState.TASK_STATE_SUBMITTED),
  taskStateToJSON(TaskState.TASK_STATE_WORKING),
];

const PAGE = 100;

export interface StoredTask {
  readonly row: TaskRow;
  readonly task: SdkTask;
}

/** What a change of a task tells those who want to hear of it, and who asked to with this change. */
export interface News {
  readonly event?: StreamResponse;
  readonly push?: NewPush | undefined;
}

/** A2A tasks on the ledger: seen only by the peer that made them, written by compare-and-set, final when terminal. */
export class LedgerTaskStore {
  readonly #ledger: LedgerStore;
  readonly #node: string;
  readonly #holder: string;

  /** `holder` is this process, whose lease has begun before it writes any task: nobody then takes its tasks for abandoned. */
  constructor(ledger: LedgerStore, nodeUrl: string, holder: string) {
    this.#ledger = ledger;
    this.#node = `${nodeUrl}#`;
    this.#holder = holder;
  }

  /** `null` for an unknown task and for another peer's alike. */
  async find(principal: Principal, id: string): Promise<StoredTask | null> {
    const row = await this.#ledger.getTask(principal.tenant, principal.agent, id);
    return row === null ? null : this.#read(row);
  }

  async create(principal: Principal, task: SdkTask, news: News = {}): Promise<StoredTask> {
    const { tenant, agent: peer } = principal;
    const row = await this.#ledger.createTask({
      ...this.#columns(task),
      id: task.id,
      tenant,
      peer,
      contextId: task.contextId,
      handoffId: null,
      ...newsOf(news),
    });
    return { row, task };
  }

  /** @throws task_conflict where someone else wrote it since, or it is final; push_limit */
  async save(stored: StoredTask, task: SdkTask, news: News = {}): Promise<StoredTask> {
    const row = { ...stored.row, ...this.#columns(task), ...newsOf(news) };
    return { row: await this.#ledger.saveTask(row), task };
  }

  async list(filter: TaskFilter): Promise<{ tasks: StoredTask[]; total: number }> {
    const { tasks, total } = await this.#ledger.listTasks(filter);
    return { tasks: await Promise.all(tasks.map((row) => this.#read(row))), total };
  }

  /** Ends what processes that live no more have left unfinished of this peer's tasks, whether or not anybody reads them. */
  async endAbandoned(tenant: string, peer: string): Promise<void> {
    for (const state of ACTIVE) {
      let after: TaskFilter['after'];
      do {
        const page = { tenant, peer, state, limit: PAGE, ...(after === undefined ? {} : { after }) };
        // The rows as they were found say where the next page begins.
        const { tasks } = await this.#ledger.listTasks(page);
        for (const row of tasks) await this.#read(row);
        after = tasks.length === PAGE ? tasks.at(-1) : undefined;
      } while (after !== undefined);
    }
  }

  #columns(task: SdkTask): Pick<TaskRow, 'state' | 'statusAt' | 'task'> {
    const wire = taskToWire(task);
    return {
      state: wire.status.state,
      statusAt: wire.status.timestamp,
      task: JSON.stringify({ ...wire, metadata: { ...wire.metadata, [RUN_KEY]: this.#holder } }),
    };
  }

  async #read(row: TaskRow): Promise<StoredTask> {
    const wire = JSON.parse(row.task) as Task;
    const { [RUN_KEY]: run, ...metadata } = wire.metadata ?? {};
    const { metadata: _, ...rest } = wire;
    const task = taskFromWire(Object.keys(metadata).length === 0 ? rest : { ...rest, metadata });
    const abandoned = ACTIVE.includes(row.state) && typeof run === 'string' && (await this.#isDead(run));
    return abandoned ? this.#fail({ row, task }) : { row, task };
  }

  /** Whether this is a process of the same agent that lives no more. */
  async #isDead(run: string): Promise<boolean> {
    if (!run.startsWith(this.#node) || run === this.#holder) return false;
    return !(await this.#ledger.isAlive(run));
  }

  /** A process of this agent ended while it worked on the task; nobody will finish it. */
  async #fail(stored: StoredTask): Promise<StoredTask> {
    const { task } = stored;
    const message = agentText(
      task.id,
      task.contextId,
      'The agent was restarted while it worked on this task.',
    );
    const status = { state: TaskState.TASK_STATE_FAILED, message, timestamp: toUtc(new Date()) };
    try {
      return await this.save(stored, { ...task, status }, { event: statusResponse(task, status) });
    } catch (error) {
      if (!isHoldfastError(error) || error.code !== 'task_conflict') throw error;
      const { row } = stored;
      const now = await this.#ledger.getTask(row.tenant, row.peer, row.id);
      if (now === null) throw new HoldfastError('internal', 'A task is gone from the ledger.');
      return this.#read(now);
    }
  }
}

function newsOf({ event, push }: News): Announcement {
  return {
    ...(event === undefined ? {} : { event: JSON.stringify(StreamResponse.toJSON(event)) }),
    ...(push === undefined ? {} : { push }),
  };
}
