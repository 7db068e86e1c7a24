import type { Task as SdkTask } from '@a2a-js/sdk';
import { TaskState, taskStateToJSON } from '@a2a-js/sdk';
import { HoldfastError, isHoldfastError, newId, toUtc } from '../core/index.js';
import type { LedgerStore, TaskFilter, TaskRow } from '../ledger/index.js';
import type { Task } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';
import { taskFromWire, taskToWire } from './codec.js';
import { agentText } from './task-events.js';

/** Metadata under which a stored task names the process that works on it; never leaves the store. */
const RUN_KEY = 'urn:holdfast:run';
const ACTIVE: readonly string[] = [
  taskStateToJSON(TaskState.TASK_STATE_SUBMITTED),
  taskStateToJSON(TaskState.TASK_STATE_WORKING),
];

export interface StoredTask {
  readonly row: TaskRow;
  readonly task: SdkTask;
}

/** A2A tasks on the ledger: seen only by the peer that made them, written by compare-and-set, final when terminal. */
export class LedgerTaskStore {
  readonly #ledger: LedgerStore;
  readonly #node: string;
  readonly #run: string;

  constructor(ledger: LedgerStore, nodeUrl: string) {
    this.#ledger = ledger;
    this.#node = `${nodeUrl}#`;
    this.#run = `${this.#node}${newId('run')}`;
  }

  /** `null` for an unknown task and for another peer's alike. */
  async find(principal: Principal, id: string): Promise<StoredTask | null> {
    const row = await this.#ledger.getTask(principal.tenant, principal.agent, id);
    return row === null ? null : this.#read(row);
  }

  async create(principal: Principal, task: SdkTask): Promise<StoredTask> {
    const { tenant, agent: peer } = principal;
    const row = await this.#ledger.createTask({
      ...this.#columns(task),
      id: task.id,
      tenant,
      peer,
      contextId: task.contextId,
      handoffId: null,
    });
    return { row, task };
  }

  /** @throws task_conflict where someone else wrote it since, or it is final */
  async save(stored: StoredTask, task: SdkTask): Promise<StoredTask> {
    return { row: await this.#ledger.saveTask({ ...stored.row, ...this.#columns(task) }), task };
  }

  async list(filter: TaskFilter): Promise<{ tasks: StoredTask[]; total: number }> {
    const { tasks, total } = await this.#ledger.listTasks(filter);
    return { tasks: await Promise.all(tasks.map((row) => this.#read(row))), total };
  }

  #columns(task: SdkTask): Pick<TaskRow, 'state' | 'statusAt' | 'task'> {
    const wire = taskToWire(task);
    return {
      state: wire.status.state,
      statusAt: wire.status.timestamp,
      task: JSON.stringify({ ...wire, metadata: { ...wire.metadata, [RUN_KEY]: this.#run } }),
    };
  }

  async #read(row: TaskRow): Promise<StoredTask> {
    const wire = JSON.parse(row.task) as Task;
    const { [RUN_KEY]: run, ...metadata } = wire.metadata ?? {};
    const { metadata: _, ...rest } = wire;
    const task = taskFromWire(Object.keys(metadata).length === 0 ? rest : { ...rest, metadata });
    const abandoned = typeof run === 'string' && run.startsWith(this.#node) && run !== this.#run;
    return abandoned && ACTIVE.includes(row.state) ? this.#fail({ row, task }) : { row, task };
  }

  /** An earlier process of this node died while it worked on the task; nobody will finish it. */
  async #fail(stored: StoredTask): Promise<StoredTask> {
    const { task } = stored;
    const message = agentText(
      task.id,
      task.contextId,
      'The agent was restarted while it worked on this task.',
    );
    const status = { state: TaskState.TASK_STATE_FAILED, message, timestamp: toUtc(new Date()) };
    try {
      return await this.save(stored, { ...task, status });
    } catch (error) {
      if (!isHoldfastError(error) || error.code !== 'task_conflict') throw error;
      const { row } = stored;
      const now = await this.#ledger.getTask(row.tenant, row.peer, row.id);
      if (now === null) throw new HoldfastError('internal', 'A task is gone from the ledger.');
      return this.#read(now);
    }
  }
}
