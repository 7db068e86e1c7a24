import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { openHoldfast } from '../../src/index.js';
import { initPair, temporaryFolder } from '../cli/support.js';
import { plainMessage, until } from '../transport/support.js';
import { afterwards, answerWith, startHook } from './support.js';

/** Runs what is in `dist/`; `npm test` builds first. */
const DOOMED = join(import.meta.dirname, 'doomed.mjs');
const LIMIT_MS = 60_000;
const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

async function doom(dir: string): Promise<ChildProcess> {
  const child = fork(DOOMED, [dir], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  children.push(child);
  await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => Promise.reject(new Error('the process ended'))),
  ]);
  return child;
}

it(
  '[R-145][R-147] a killed process loses no notification: the next one delivers them, in order, under the same ids',
  async () => {
    const folder = temporaryFolder();
    afterwards.push(() => folder.remove());
    const { triage, billing } = await initPair(folder.path);
    const hook = await startHook();
    const file = join(billing.dir, 'holdfast.yaml');
    const config = parse(readFileSync(file, 'utf8'));
    config.network = { ...config.network, loopback: [...config.network.loopback, `127.0.0.1:${hook.port}`] };
    writeFileSync(file, stringify(config));
    const peer = await openHoldfast({ dir: triage.dir });
    afterwards.push(() => peer.close());
    await peer.start();

    // The first is taken, but its process is killed before it hears so; all are stored by then.
    hook.answer = () =>
      void until(async () => (await peer.ledger.countNotifications('default')).waiting === 4, 20_000).then(
        () => first.kill('SIGKILL'),
      );
    const first = await doom(billing.dir);
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { url: hook.url } };
    const answer = await fetch(`${billing.url}/a2a/rest/message:send`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'a2a-version': '1.0',
        authorization: `Bearer ${await peer.identity.tokenFor(billing.url)}`,
      },
      body: JSON.stringify({ message: plainMessage(), configuration }),
    });
    expect(answer.status).toBe(200);
    if (first.exitCode === null && first.signalCode === null) await once(first, 'exit');
    expect(hook.received).toHaveLength(1);

    hook.answer = answerWith(503);
    const second = await doom(billing.dir);
    await until(() => hook.received.length >= 2, 20_000);
    second.kill('SIGKILL');
    await once(second, 'exit');

    hook.answer = answerWith(200);
    const before = hook.received.length;
    await doom(billing.dir);
    await until(() => hook.received.length >= before + 4, 20_000);
    const delivered = hook.received.slice(before).map(({ body }) => Object.keys(JSON.parse(body)).join());
    expect(delivered).toEqual(['task', 'artifactUpdate', 'artifactUpdate', 'statusUpdate']);
    const ids = hook.received.map(({ headers }) => headers['webhook-id']);
    expect(new Set(ids).size).toBe(4);
    expect(new Set(ids.slice(0, before + 1)).size).toBe(1);
  },
  LIMIT_MS,
);
