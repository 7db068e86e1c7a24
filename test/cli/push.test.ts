import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openSqliteLedger } from '../../src/storage/index.js';
import { type Agent, initAgent, type Ran, run, temporaryFolder } from './support.js';

let folder: ReturnType<typeof temporaryFolder>;
let billing: Agent;

beforeEach(async () => {
  folder = temporaryFolder();
  billing = await initAgent(folder.path, 'billing');
  const ledger = await openSqliteLedger({ file: join(folder.path, 'ledger.db') });
  const made = { tenant: 'default', peer: 'https://triage.example', contextId: 'c', handoffId: null };
  const working = { state: 'TASK_STATE_WORKING', statusAt: '2026-01-01T00:00:00.000Z', task: '{}' };
  for (const name of ['gone', 'slow']) {
    const origin = `https://${name}.example`;
    const secrets = { token: 'canary-token', scheme: 'Bearer', credentials: 'canary-credentials' };
    const push = {
      pushId: `push_${name}`,
      configId: name,
      agent: billing.url,
      url: `${origin}/?k=canary-query`,
      origin,
    };
    await ledger.createTask({
      ...made,
      ...working,
      id: `task_${name}`,
      push: { ...push, ...secrets },
      event: JSON.stringify({ task: { id: `task_${name}` } }),
    });
  }
  await ledger.heartbeat('p1', 60_000);
  const claim = {
    tenant: 'default',
    agent: billing.url,
    holder: 'p1',
    limit: 10,
    without: ['https://slow.example'],
  };
  await ledger.claimPushes({ ...claim, working: [] });
  const gone = {
    tenant: 'default',
    pushId: 'push_gone',
    seq: 1,
    holder: 'p1',
    outcome: { what: 'gone' },
  } as const;
  await ledger.settleNotification(gone);
  await ledger.close();
});

afterEach(() => folder.remove());

const push = (...argv: string[]): Promise<Ran> => run('push', ...argv, '--dir', billing.dir);

describe('holdfast push', () => {
  it('[R-147] lists what is not delivered and counts it, without what proves us', async () => {
    const all = await push('list');
    expect(all.exit).toBe(0);
    expect(all.out).toMatch(/push_gone-1 +dead +0 +gone .*https:\/\/gone\.example/);
    expect(all.out).toMatch(/push_slow-1 +waiting +0 +- .*https:\/\/slow\.example/);
    expect(all.out).toContain('1 waiting, 1 dead.');
    const json = await push('list', '--state', 'dead', '--limit', '1', '--json');
    expect(json.json).toMatchObject({
      notifications: [{ id: 'push_gone-1', taskId: 'task_gone', configId: 'gone', reason: 'gone' }],
      counts: { waiting: 1, dead: 1 },
    });
    for (const { out } of [all, json, await push('show', 'push_gone-1', '--json')])
      expect(out).not.toContain('canary');
    expect((await push('list', '--tenant', 'other')).out).toContain('0 waiting, 0 dead.');
  });

  it('shows what one says', async () => {
    const shown = await push('show', 'push_gone-1');
    expect(shown.out).toContain('push_gone-1 is dead');
    expect(shown.out).toContain('"id": "task_gone"');
    const { json } = await push('show', 'push_slow-1', '--json');
    expect(json.notification).toMatchObject({ state: 'waiting', body: { task: { id: 'task_slow' } } });
  });

  it('[R-147] has dead ones tried again, one or all', async () => {
    expect((await push('retry', 'push_gone-1', '--json')).json).toEqual({ retried: 1 });
    expect(await push('retry', 'push_gone-1')).toMatchObject({
      exit: 2,
      err: expect.stringContaining('[not_found]'),
    });
    expect((await push('retry', '--all')).out).toContain('0 waiting again');
    expect((await push('list')).out).toContain('2 waiting, 0 dead.');
  });

  it.each([
    [['list', '--state', 'gone'], '--state is waiting or dead'],
    [['list', '--limit', '0'], '--limit is a whole number'],
    [['show', 'push_gone'], 'is no id of a notification'],
    [['show', 'push_gone-7'], 'no notification push_gone-7'],
    [['retry'], 'Name one notification, or all with --all'],
    [['retry', 'push_gone-1', '--all'], 'Name one notification, or all with --all'],
  ])('says what is wrong with %j', async (argv, message) => {
    expect(await push(...argv)).toMatchObject({ exit: 2, err: expect.stringContaining(message) });
  });
});
