import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CASE_FILE, CONTRACT, initPair, run, TRANSCRIPT, temporaryFolder } from './support.js';

/** The command as it ships; `npm test` builds first. */
const COMMAND = join(import.meta.dirname, '../../bin/holdfast.js');

interface Child {
  readonly process: ChildProcess;
  out(): string;
  err(): string;
}

/** `holdfast serve` as a process of its own; resolves once it listens. */
async function serveInProcess(dir: string): Promise<Child> {
  const child = spawn(process.execPath, [COMMAND, 'serve', '--dir', dir, '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stderr?.on('data', (data) => {
    err += data;
  });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`serve ended with ${code}: ${err}`)));
    child.stdout?.on('data', (data) => {
      out += data;
      if (out.includes('\n')) resolve();
    });
  });
  return { process: child, out: () => out, err: () => err };
}

describe('two nodes in two processes', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let children: Child[];

  beforeEach(() => {
    folder = temporaryFolder();
    children = [];
  });

  afterEach(() => {
    for (const child of children) child.process.kill('SIGKILL');
    folder.remove();
  });

  const send = (from: string, to: string) =>
    run(
      ...['handoff', 'send', '--file', CASE_FILE, '--to', to, '--contract', CONTRACT],
      ...['--evidence', TRANSCRIPT, '--redact', '--dir', from],
    );

  it('wait for a handler when they are told to stop, and end at once when they are told again', async () => {
    const { triage, billing } = await initPair(folder.path);
    const module = join(folder.path, 'never.mjs');
    const handler = '{ work: async () => { console.error("begun"); await new Promise(() => {}); } }';
    writeFileSync(module, `export default (holdfast) => holdfast.onHandoff('${CONTRACT}', ${handler});\n`);
    appendFileSync(join(billing.dir, 'holdfast.yaml'), `handlers: ${module}\nshutdown: 1h\n`);
    const [first, receiver] = await Promise.all([serveInProcess(triage.dir), serveInProcess(billing.dir)]);
    children.push(first, receiver);
    await run('case', 'open', CASE_FILE, '--dir', triage.dir);
    expect((await send(triage.dir, billing.url)).exit).toBe(0);
    await expect.poll(() => receiver.err(), { timeout: 10_000 }).toContain('begun');
    const ended = once(receiver.process, 'exit');
    receiver.process.kill('SIGTERM');
    const health = async () => (await fetch(`${billing.url}/healthz`)).status;
    await expect.poll(health, { timeout: 10_000 }).toBe(503);
    receiver.process.kill('SIGINT');
    expect(await ended).toEqual([null, 'SIGINT']);
  });

  it('[R-073][R-075] hand a case over, fence the former owner, and end at SIGTERM or SIGHUP with status 0', async () => {
    const { triage, billing } = await initPair(folder.path);
    children.push(...(await Promise.all([serveInProcess(triage.dir), serveInProcess(billing.dir)])));
    expect(children.map((child) => JSON.parse(child.out()).agent)).toEqual(['triage', 'billing']);

    await run('case', 'open', CASE_FILE, '--dir', triage.dir);
    expect(await send(triage.dir, billing.url)).toMatchObject({
      exit: 0,
      out: expect.stringContaining(`${billing.url} owns CASE-7001 at epoch 2 (CASE-7001:2, attempt 1;`),
    });
    const note = (dir: string, epoch: string) =>
      run('case', 'note', 'CASE-7001', 'text', '--epoch', epoch, '--dir', dir);
    expect((await note(billing.dir, '2')).exit).toBe(0);
    expect(await note(triage.dir, '1')).toMatchObject({
      exit: 3,
      err: expect.stringContaining('[epoch_stale]'),
    });

    children.forEach((child, at) => {
      child.process.kill(at === 0 ? 'SIGTERM' : 'SIGHUP');
    });
    const exits = await Promise.all(children.map((child) => once(child.process, 'exit')));
    expect(exits.map(([code]) => code)).toEqual([0, 0]);
    for (const child of children) {
      expect(child.err()).not.toMatch(/Bearer|5550 1234|sig=(?!\[)/);
      expect(child.out().trim().split('\n')).toHaveLength(1);
    }
  });
});
