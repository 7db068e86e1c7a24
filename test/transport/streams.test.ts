import { TaskState } from '@a2a-js/sdk';
import { describe, expect, test } from 'vitest';
import { gate, type Script, scripted } from './executors.js';
import { eventsIn, PEER, plainMessage, rest, rpc, until } from './support.js';
import { nodes, openStream, send, start, startWith, stateOf } from './task-nodes.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_INPUT_REQUIRED: INPUT_REQUIRED } = TaskState;

describe('streams', () => {
  const steps: Script = (turn) => {
    turn.task();
    turn.artifact('a', 'text');
    turn.status(COMPLETED);
  };

  test('begin with the task and end with its last state, on both bindings', async () => {
    const node = await startWith(steps);
    const byRpc = eventsIn(
      await (await openStream(node, 'SendStreamingMessage', { message: plainMessage() })).text(),
    );
    const response = await fetch(`${node.url}/a2a/rest/message:stream`, {
      method: 'POST',
      headers: {
        'content-type': 'application/a2a+json',
        'a2a-version': '1.0',
        authorization: `Bearer ${PEER}`,
      },
      body: JSON.stringify({ message: plainMessage() }),
    });
    const byRest = eventsIn(await response.text());
    for (const events of [byRpc.map((event) => event.result), byRest]) {
      expect(events.map((event) => Object.keys(event)[0])).toEqual([
        'task',
        'artifactUpdate',
        'statusUpdate',
      ]);
      expect(events[2].statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    }
  });

  test('begin with the task also where a follow-up begins with something else', async () => {
    const node = await startWith((turn) => {
      if (turn.text === 'first') turn.task();
      turn.status(turn.text === 'first' ? INPUT_REQUIRED : COMPLETED);
    });
    const { task } = (await send(node, plainMessage('first'))).result;
    const params = { message: plainMessage('second', { taskId: task.id }) };
    const events = eventsIn(await (await openStream(node, 'SendStreamingMessage', params)).text());
    expect(events[0].result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  test('an error before the first event is an ordinary answer', async () => {
    const node = await startWith(steps);
    const found = await rpc(node, 'SubscribeToTask', { id: 'unknown' });
    expect([found.status, found.body.error.code]).toEqual([200, -32001]);
    const byRest = await rest(node, 'POST', '/tasks/unknown:subscribe');
    expect([byRest.status, byRest.headers.get('content-type')]).toEqual([404, 'application/a2a+json']);
  });

  test('a subscriber gets the task as it is, then what happens', async () => {
    const door = gate();
    const node = await startWith(async (turn) => {
      turn.task();
      await door.wait;
      turn.artifact('a', 'text');
      turn.status(COMPLETED);
    });
    const { task } = (await send(node, plainMessage(), { returnImmediately: true })).result;
    const [byRpc, byGet] = await Promise.all([
      openStream(node, 'SubscribeToTask', { id: task.id }),
      fetch(`${node.url}/a2a/rest/tasks/${task.id}:subscribe`, {
        headers: { 'a2a-version': '1.0', authorization: `Bearer ${PEER}` },
      }),
    ]);
    door.open();
    const kinds = (events: object[]) => events.map((event) => Object.keys(event)[0]);
    const expected = ['task', 'artifactUpdate', 'statusUpdate'];
    expect(kinds(eventsIn(await byRpc.text()).map((event) => event.result))).toEqual(expected);
    expect(kinds(eventsIn(await byGet.text()))).toEqual(expected);
    expect((await rpc(node, 'SubscribeToTask', { id: task.id })).body.error.code).toBe(-32004);
  });

  test('a client that leaves ends its stream and nothing else, fifty times over', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const door = gate();
    const node = await startWith(async (turn) => {
      turn.task();
      await door.wait;
      turn.status(COMPLETED);
    });
    const abort = new AbortController();
    const own = await openStream(node, 'SendStreamingMessage', { message: plainMessage() }, abort.signal);
    const [first] = eventsIn(new TextDecoder().decode((await own.body?.getReader().read())?.value));
    const { id } = first.result.task;
    for (let round = 0; round < 50; round += 1) {
      const leaving = new AbortController();
      const response = await openStream(node, 'SubscribeToTask', { id }, leaving.signal);
      expect(response.status).toBe(200);
      leaving.abort();
    }
    abort.abort();
    // Every stream is gone while the task still runs: each is logged once its connection has closed.
    const closed = () => node.logger.lines.filter(({ message }) => message === 'request').length;
    await until(() => closed() >= 51);
    door.open();
    await until(async () => (await stateOf(node, id)) === 'TASK_STATE_COMPLETED');
    await new Promise((resolve) => setImmediate(resolve));
    process.removeListener('warning', onWarning);
    expect(warnings).toEqual([]);
  });

  test('end when the server closes, although the task still runs', async () => {
    const door = gate();
    const node = await start({
      executor: scripted(async (turn) => {
        turn.task();
        await door.wait;
      }),
    });
    const response = await openStream(node, 'SendStreamingMessage', { message: plainMessage() });
    const startedAt = performance.now();
    await node.close(2_000);
    await response.text();
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    door.open();
    nodes.length = 0;
  });
});
