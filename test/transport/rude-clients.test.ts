import net from 'node:net';
import { TaskState } from '@a2a-js/sdk';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { gate, type Script, scripted } from './executors.js';
import { expectJson, raw, request } from './raw-http.js';
import { PEER, plainMessage, rpc, startNode, type TestNode, until } from './support.js';

const COMPLETED = TaskState.TASK_STATE_COMPLETED;

let node: TestNode;

beforeAll(async () => {
  node = await startNode();
});

afterAll(() => node.close());

const host = () => `Host: 127.0.0.1:${node.port}`;

describe('requests', () => {
  test('an expectation that nobody can meet is refused in JSON, and the connection ends', async () => {
    const lines = [host(), 'Expect: 200-ok', 'Content-Length: 2', '', '{}'];
    expectJson(await raw(node, ['POST /a2a HTTP/1.1', ...lines].join('\r\n')), 417);
  });

  test.each(['OPTIONS', 'TRACE', 'PUT', 'PATCH', 'DELETE', 'PROPFIND'])(
    '%s of what is only read is not found, in JSON',
    async (method) => {
      const headers = [
        host(),
        `Authorization: Bearer ${PEER}`,
        'A2A-Version: 1.0',
        'Origin: http://evil.example',
      ];
      for (const path of ['/a2a/rest/tasks', '/a2a/rest/tasks/x', '/a2a/rest/nothing']) {
        const answer = await raw(node, request(`${method} ${path} HTTP/1.1`, ...headers));
        expectJson(answer, 404);
        expect(answer.toLowerCase()).not.toMatch(/access-control|allow:/);
      }
    },
  );

  test('what follows a malformed request is never answered, and its connection does not stay', async () => {
    const socket = net.connect({ port: node.port, host: '127.0.0.1', allowHalfOpen: true });
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    socket.on('error', () => undefined);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.write('hello\r\n\r\n');
    await new Promise((resolve) => socket.once('end', resolve));
    expectJson(text, 400);
    // This side stays open and goes on writing: only a connection that is really gone answers that with a reset.
    const timer = setInterval(() => socket.write('x'), 10);
    await closed;
    clearInterval(timer);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test('a request that drips is ended when its time is up', { timeout: 20_000 }, async () => {
    const socket = net.connect(node.port, '127.0.0.1');
    const startedAt = performance.now();
    socket.write('GET /healthz HTTP/1.1\r\n');
    const timer = setInterval(() => socket.write('X: y\r\n'), 1_000);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('close', resolve));
    clearInterval(timer);
    expect(performance.now() - startedAt).toBeLessThan(15_000);
    expectJson(text, 408);
  });

  test('a request that never came to its end is not logged as one that was answered', async () => {
    const before = node.logger.lines.length;
    const lines = [host(), `Authorization: Bearer ${PEER}`, 'Content-Type: application/json'];
    const socket = net.connect(node.port, '127.0.0.1');
    socket.write(
      ['POST /a2a HTTP/1.1', ...lines, 'A2A-Version: 1.0', 'Content-Length: 900', '', '{"json'].join('\r\n'),
    );
    setTimeout(() => socket.destroy(), 50);
    await expect
      .poll(() => node.logger.lines.slice(before))
      .toMatchObject([{ level: 'info', fields: { path: '/a2a', status: null }, message: 'request' }]);
  });
});

describe('streams', () => {
  const nodes: TestNode[] = [];

  afterEach(async () => {
    for (const each of nodes.splice(0)) await each.close();
  });

  const startWith = async (script: Script) => {
    const started = await startNode({ executor: scripted(script) });
    nodes.push(started);
    return started;
  };

  test('are never mixed with the answer to something else on their connection', async () => {
    const door = gate();
    const node = await startWith(async (turn) => {
      turn.task();
      await door.wait;
      turn.status(COMPLETED);
    });
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendStreamingMessage',
      params: { message: plainMessage() },
    });
    const headers = [
      `Host: 127.0.0.1:${node.port}`,
      `Authorization: Bearer ${PEER}`,
      'A2A-Version: 1.0',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    const socket = net.connect(node.port, '127.0.0.1');
    let text = '';
    let broken = false;
    socket.on('data', (chunk) => {
      text += chunk;
      if (broken || !text.includes('data: ')) return;
      broken = true;
      socket.write('hello\r\n\r\n');
    });
    socket.on('error', () => undefined);
    socket.write(['POST /a2a HTTP/1.1', ...headers, '', body].join('\r\n'));
    await new Promise((resolve) => socket.once('close', resolve));
    door.open();
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  describe('for a client that does not read', () => {
    /** Asks for a stream of `events` updates of 20 kB, and reads nothing of it yet. */
    async function neglect(events: number) {
      let published = false;
      const node = await startWith(async (turn) => {
        turn.task();
        for (let index = 0; index < events; index += 1) {
          turn.artifact('a', `${index}${'x'.repeat(20_000)}`);
          if (index % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
        turn.status(COMPLETED);
        published = true;
      });
      const params = { message: plainMessage() };
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params });
      const headers = [
        `Host: 127.0.0.1:${node.port}`,
        `Authorization: Bearer ${PEER}`,
        'A2A-Version: 1.0',
        'Content-Type: application/json',
        `Content-Length: ${body.length}`,
      ];
      const socket = net.connect(node.port, '127.0.0.1').pause();
      socket.on('error', () => undefined);
      socket.write(['POST /a2a HTTP/1.1', ...headers, '', body].join('\r\n'));
      await until(() => published, 20_000);
      await until(
        async () =>
          (await rpc(node, 'ListTasks', {})).body.result.tasks[0].status.state === 'TASK_STATE_COMPLETED',
        20_000,
      );
      return { node, socket };
    }

    test('wait in bounded number; it is told that it missed some', { timeout: 30_000 }, async () => {
      const { socket } = await neglect(2_000);
      let events = 0;
      let tail = '';
      socket.on('data', (chunk) => {
        events += chunk.toString('latin1').split('data: ').length - 1;
        tail = (tail + chunk.toString('latin1')).slice(-2_000);
        if (tail.endsWith('0\r\n\r\n')) socket.destroy();
      });
      socket.resume();
      await new Promise((resolve) => socket.once('close', resolve));
      expect(events).toBeLessThan(1_800);
      expect(tail).toContain('event: error');
      expect(tail).toContain('"reason":"BUSY"');
    });

    test('do not keep its connection for ever', { timeout: 30_000 }, async () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'], shouldAdvanceTime: true });
      try {
        const { node, socket } = await neglect(600);
        const ended = () => node.logger.lines.filter(({ message }) => message === 'request').length;
        const before = ended();
        await vi.advanceTimersByTimeAsync(121_000);
        await until(() => ended() === before + 1);
        socket.destroy();
      } finally {
        vi.useRealTimers();
      }
    });
  });
});
