import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TaskState } from '@a2a-js/sdk';
import { describe, expect, test, vi } from 'vitest';
import type { LedgerStore } from '../../src/ledger/index.js';
import { createMemoryLedger, openSqliteLedger } from '../../src/storage/index.js';
import { gate, type Script, scripted } from './executors.js';
import { eventsIn, PEER, plainMessage, rest, rpc, STRANGER, until } from './support.js';
import { afterwards, nodes, openStream, send, start, startWith, stateOf } from './task-nodes.js';

const {
  TASK_STATE_COMPLETED: COMPLETED,
  TASK_STATE_WORKING: WORKING,
  TASK_STATE_INPUT_REQUIRED: INPUT_REQUIRED,
  TASK_STATE_AUTH_REQUIRED: AUTH_REQUIRED,
} = TaskState;

describe('a plain message', () => {
  test('[R-107] without a handler gets a REJECTED task that says why', async () => {
    const node = await start();
    const { result } = await send(node);
    expect(result.task.status.state).toBe('TASK_STATE_REJECTED');
    expect(result.task.status.message.parts[0].text).toContain('only takes case handovers');
    expect(await stateOf(node, result.task.id)).toBe('TASK_STATE_REJECTED');
  });

  test('[R-107][R-108] is worked on as a task of our making, and blocks until it is done', async () => {
    const node = await startWith(async (turn) => {
      turn.task();
      turn.artifact('a', 'one');
      turn.artifact('a', ' two', true);
      turn.status(COMPLETED, 'done');
    });
    const { result } = await send(node, plainMessage('hi', { contextId: 'ours' }));
    const { task } = result;
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.contextId).toBe('ours');
    expect(task.artifacts[0].parts.map((part: { text: string }) => part.text)).toEqual(['one', ' two']);
    expect((await rpc(node, 'GetTask', { id: task.id })).body.result).toEqual(task);
    expect((await rest(node, 'GET', `/tasks/${task.id}`)).body).toEqual(task);
    expect((await rest(node, 'GET', `/tasks/${task.id}?historyLength=1`)).body.history).toHaveLength(1);
    expect((await rest(node, 'GET', `/tasks/${task.id}?historyLength=0`)).body.history).toBeUndefined();
  });

  test('may be answered by a message, without a task', async () => {
    const node = await startWith((turn) => turn.message('pong'));
    const { result } = await send(node);
    expect(result.message.parts[0].text).toBe('pong');
    expect((await rpc(node, 'ListTasks', {})).body.result.totalSize).toBe(0);
  });

  test('returns at once where that is asked for, and goes on', async () => {
    const door = gate();
    const node = await startWith(async (turn) => {
      turn.task();
      await door.wait;
      turn.status(COMPLETED);
    });
    const { result } = await send(node, plainMessage(), { returnImmediately: true });
    expect(result.task.status.state).toBe('TASK_STATE_WORKING');
    door.open();
    await until(async () => (await stateOf(node, result.task.id)) === 'TASK_STATE_COMPLETED');
  });

  test.each([
    ['INPUT_REQUIRED', INPUT_REQUIRED],
    ['AUTH_REQUIRED', AUTH_REQUIRED],
  ])(
    '[R-107] returns when the task is %s, and a follow-up goes on with the same task',
    async (name, state) => {
      const node = await startWith((turn) => {
        if (turn.text !== 'answer') turn.task();
        turn.status(turn.text === 'answer' ? COMPLETED : state, 'next?');
      });
      const first = (await send(node)).result.task;
      expect(first.status.state).toBe(`TASK_STATE_${name}`);
      const second = (await send(node, plainMessage('answer', { taskId: first.id }))).result.task;
      expect([second.id, second.contextId, second.status.state]).toEqual([
        first.id,
        first.contextId,
        'TASK_STATE_COMPLETED',
      ]);
      expect(second.history).toHaveLength(4);
    },
  );

  test("[R-045] with a contextId that is not the task's is refused, and nothing changes", async () => {
    const node = await startWith((turn) => {
      turn.task();
      turn.status(INPUT_REQUIRED);
    });
    const { task } = (await send(node)).result;
    const before = (await rpc(node, 'GetTask', { id: task.id })).body;
    const found = await send(node, plainMessage('x', { taskId: task.id, contextId: 'another' }));
    expect(found.error.code).toBe(-32602);
    expect((await rpc(node, 'GetTask', { id: task.id })).body).toEqual(before);
  });

  test("[R-108] for a task of the client's invention is refused, and nothing is stored", async () => {
    const node = await startWith((turn) => turn.task(COMPLETED));
    expect((await send(node, plainMessage('x', { taskId: 'my-own-id' }))).error.code).toBe(-32001);
    expect((await rpc(node, 'ListTasks', {})).body.result.totalSize).toBe(0);
  });

  test('to a task that is over is an unsupported operation', async () => {
    const executor = scripted((turn) => turn.task(COMPLETED));
    const node = await start({ executor });
    const { task } = (await send(node)).result;
    expect((await send(node, plainMessage('more', { taskId: task.id }))).error.code).toBe(-32004);
    expect(executor.runs).toBe(1);
  });

  test('keeps a data part that is null', async () => {
    const node = await startWith((turn) => turn.task(COMPLETED));
    const parts = [{ data: null }];
    const { task } = (await send(node, plainMessage('', { parts }))).result;
    expect((await rpc(node, 'GetTask', { id: task.id })).body.result.history[0].parts).toEqual(parts);
  });
});

describe('an executor', () => {
  test('[R-107][R-153] that throws never reaches the peer, nor the console; the task is FAILED and can be found', async () => {
    const consoles = [vi.spyOn(console, 'error'), vi.spyOn(console, 'warn'), vi.spyOn(console, 'log')];
    const node = await startWith((turn) => {
      if (turn.text === 'later') turn.task();
      throw new Error('password is hunter2');
    });
    for (const text of ['at once', 'later']) {
      for (const found of [
        (await send(node, plainMessage(text))).result.task,
        (await rest(node, 'POST', '/message:send', { message: plainMessage(text) })).body.task,
        eventsIn(
          await (await openStream(node, 'SendStreamingMessage', { message: plainMessage(text) })).text(),
        )[0].result.task,
      ]) {
        expect(JSON.stringify(found)).not.toContain('hunter2');
        expect(await stateOf(node, found.id)).toBe('TASK_STATE_FAILED');
      }
    }
    expect(
      node.logger.lines.some(({ level, message }) => level === 'error' && message.includes('executor')),
    ).toBe(true);
    for (const spy of consoles) expect(spy).not.toHaveBeenCalled();
  });

  test('that says nothing leaves a FAILED task', async () => {
    const node = await startWith(() => undefined);
    expect((await send(node)).result.task.status.state).toBe('TASK_STATE_FAILED');
  });

  test('cannot change a task that is over, by status, artifact or task', async () => {
    const door = gate();
    const node = await startWith(async (turn) => {
      turn.task();
      turn.status(COMPLETED);
      turn.status(WORKING);
      turn.artifact('late', 'late');
      turn.task(WORKING);
      door.open();
    });
    const { task } = (await send(node)).result;
    await door.wait;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect((await rpc(node, 'GetTask', { id: task.id })).body.result).toEqual(task);
  });

  test('works on one message of a task at a time; the next waits for it', async () => {
    let [active, most] = [0, 0];
    const node = await startWith(async (turn) => {
      active += 1;
      most = Math.max(most, active);
      if (turn.text === 'first') turn.task();
      await new Promise((resolve) => setTimeout(resolve, 20));
      turn.artifact(turn.text, turn.text);
      turn.status(INPUT_REQUIRED);
      active -= 1;
    });
    const { task } = (await send(node, plainMessage('first'))).result;
    const both = ['second', 'third'].map((text) => send(node, plainMessage(text, { taskId: task.id })));
    await Promise.all(both);
    expect(most).toBe(1);
    const stored = (await rpc(node, 'GetTask', { id: task.id })).body.result;
    expect(stored.artifacts.map((one: { artifactId: string }) => one.artifactId).sort()).toEqual([
      'first',
      'second',
      'third',
    ]);
  });

  test('that takes too long makes the next message a conflict, which says so', async () => {
    const door = gate();
    const executor = scripted(async (turn) => {
      turn.task();
      await door.wait;
      turn.status(COMPLETED);
    });
    const node = await start({ executor, turnWaitMs: 30 });
    const { task } = (await send(node, plainMessage(), { returnImmediately: true })).result;
    const found = await rpc(node, 'SendMessage', { message: plainMessage('x', { taskId: task.id }) });
    expect([found.status, found.body.error.data[0].reason]).toEqual([409, 'TASK_CONFLICT']);
    expect(executor.runs).toBe(1);
    door.open();
  });
});

describe('cancel', () => {
  test('[R-107] ends the task although the executor does nothing about it', async () => {
    const door = gate();
    const node = await startWith(async (turn) => {
      turn.task();
      await door.wait;
      turn.status(COMPLETED, 'too late');
    });
    const { task } = (await send(node, plainMessage(), { returnImmediately: true })).result;
    const canceled = await rpc(node, 'CancelTask', { id: task.id });
    expect(canceled.body.result.status.state).toBe('TASK_STATE_CANCELED');
    door.open();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await stateOf(node, task.id)).toBe('TASK_STATE_CANCELED');
    // The same again is no error.
    expect((await rest(node, 'POST', `/tasks/${task.id}:cancel`)).body.status.state).toBe(
      'TASK_STATE_CANCELED',
    );
  });

  test('ends a task that waits for input, and one whose executor fails to cancel', async () => {
    const door = gate();
    const node = await startWith(
      async (turn) => {
        turn.task();
        if (turn.text === 'parked') return turn.status(INPUT_REQUIRED);
        await door.wait;
      },
      async () => {
        throw new Error('cannot');
      },
    );
    for (const text of ['parked', 'running']) {
      const { task } = (await send(node, plainMessage(text), { returnImmediately: true })).result;
      const canceled = await rpc(node, 'CancelTask', { id: task.id });
      expect(canceled.body.result.status.state).toBe('TASK_STATE_CANCELED');
    }
    door.open();
  });

  test('of a task that is over is refused', async () => {
    const node = await startWith((turn) => turn.task(COMPLETED));
    const { task } = (await send(node)).result;
    expect((await rpc(node, 'CancelTask', { id: task.id })).body.error.code).toBe(-32002);
    const byRest = await rest(node, 'POST', `/tasks/${task.id}:cancel`);
    expect([byRest.status, byRest.body.error.status]).toEqual([400, 'FAILED_PRECONDITION']);
  });

  test('and completion at the same moment make exactly one terminal state, which stays', async () => {
    const doors = new Map<string, () => void>();
    const node = await startWith(
      async (turn) => {
        turn.task();
        await new Promise<void>((resolve) => doors.set(turn.context.taskId, resolve));
        turn.status(COMPLETED);
      },
      async (taskId) => doors.get(taskId)?.(),
    );
    const seen = new Set<string>();
    for (let round = 0; round < 50; round += 1) {
      const { task } = (await send(node, plainMessage(), { returnImmediately: true })).result;
      await until(() => doors.has(task.id));
      if (round % 2 === 0) doors.get(task.id)?.();
      const canceled = (await rpc(node, 'CancelTask', { id: task.id })).body;
      const state = await stateOf(node, task.id);
      expect(['TASK_STATE_CANCELED', 'TASK_STATE_COMPLETED']).toContain(state);
      expect(canceled.result?.status.state ?? canceled.error.code).toBe(
        state === 'TASK_STATE_CANCELED' ? state : -32002,
      );
      seen.add(state ?? '');
      await new Promise((resolve) => setImmediate(resolve));
      expect(await stateOf(node, task.id)).toBe(state);
    }
    expect(seen.has('TASK_STATE_COMPLETED')).toBe(true);
  });
});

async function sqliteLedger(): Promise<LedgerStore> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-tasks-'));
  const ledger = await openSqliteLedger({ file: join(folder, 'ledger.db') });
  afterwards.push(async () => {
    await ledger.close();
    await rm(folder, { recursive: true, force: true });
  });
  return ledger;
}

describe.each([
  ['memory', async () => createMemoryLedger()],
  ['SQLite', sqliteLedger],
])('durability in %s', (_storage, openLedger) => {
  test('another node on the same ledger answers for a task, and what a dead process left is FAILED, not WORKING', async () => {
    const ledger = await openLedger();
    const door = gate();
    const script: Script = async (turn) => {
      turn.task();
      if (turn.text === 'done') return turn.status(COMPLETED);
      await door.wait;
    };
    const before = await start({ ledger, executor: scripted(script) });
    const done = (await send(before, plainMessage('done'))).result.task;
    const left = (await send(before, plainMessage('left'), { returnImmediately: true })).result.task;
    await before.close();
    nodes.length = 0;
    const elsewhere = await start({ ledger });
    expect(await stateOf(elsewhere, done.id)).toBe('TASK_STATE_COMPLETED');
    expect(await stateOf(elsewhere, left.id)).toBe('TASK_STATE_WORKING');
    const again = await start({ ledger, port: before.port });
    expect(await stateOf(again, left.id)).toBe('TASK_STATE_FAILED');
    expect(JSON.stringify((await rpc(again, 'GetTask', { id: left.id })).body)).not.toContain(
      'urn:holdfast:run',
    );
    door.open();
  });

  test('a task of a process that lives is left to it, and one of a process that ended is ended though nobody reads it', async () => {
    const ledger = await openLedger();
    const door = gate();
    const executor = scripted(async (turn) => {
      turn.task();
      await door.wait;
      turn.status(COMPLETED);
    });
    const living = await start({ ledger, executor });
    const holder = `${living.url}#run_1`;
    await ledger.heartbeat(holder, 60_000);
    const other = await start({ ledger, executor, holder, agentUrl: living.url });
    const { task } = (await send(other, plainMessage(), { returnImmediately: true })).result;
    const stored = async () => (await ledger.getTask('acme', PEER, task.id))?.state;
    const peers = [{ tenant: 'acme', url: PEER }];
    await living.server.endAbandonedTasks(peers);
    expect(await stateOf(living, task.id)).toBe('TASK_STATE_WORKING');
    await ledger.release(holder);
    await living.server.endAbandonedTasks([{ tenant: 'acme', url: STRANGER }]);
    expect(await stored()).toBe('TASK_STATE_WORKING');
    await living.server.endAbandonedTasks(peers);
    expect(await stored()).toBe('TASK_STATE_FAILED');
    // The one that was thought dead was only slow: what is final stays so.
    door.open();
    await expect.poll(() => other.server.drain().then(() => true)).toBe(true);
    expect(await stored()).toBe('TASK_STATE_FAILED');
  });

  test('a task canceled through another node stays canceled when the work is finished', async () => {
    const ledger = await openLedger();
    const door = gate();
    const working = await start({
      ledger,
      executor: scripted(async (turn) => {
        turn.task();
        await door.wait;
        turn.artifact('late', 'late');
        turn.status(COMPLETED);
      }),
    });
    const other = await start({ ledger });
    const { task } = (await send(working, plainMessage(), { returnImmediately: true })).result;
    expect((await rpc(other, 'CancelTask', { id: task.id })).body.result.status.state).toBe(
      'TASK_STATE_CANCELED',
    );
    door.open();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const stored = (await rpc(working, 'GetTask', { id: task.id })).body.result;
    expect([stored.status.state, stored.artifacts]).toEqual(['TASK_STATE_CANCELED', undefined]);
  });
});
