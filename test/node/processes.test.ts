import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Processes } from '../../src/node/processes.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'holdfast-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

async function buried(): Promise<string[]> {
  const found: string[] = [];
  await new Processes(dir).bury(async (holder) => void found.push(holder));
  return found;
}

/** Changes what the only process entered left in the folder. */
function edit(change: Record<string, unknown>): void {
  const file = join(dir, 'run', readdirSync(join(dir, 'run'))[0] ?? '');
  writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...change }));
}

async function pidOfTheDead(): Promise<number | undefined> {
  const child = spawn('true');
  await once(child, 'exit');
  return child.pid;
}

describe('[R-189] the processes of an agent', () => {
  it('are left alone while they run, and leave nothing when they end', async () => {
    const leave = new Processes(dir).enter('https://a.example#run_1');
    expect(await buried()).toEqual([]);
    leave();
    expect(readdirSync(join(dir, 'run'))).toEqual([]);
    expect(await buried()).toEqual([]);
  });

  it('are buried once where they are gone, or another has their pid now', async () => {
    new Processes(dir).enter('https://a.example#run_1');
    edit({ pid: await pidOfTheDead() });
    expect(await buried()).toEqual(['https://a.example#run_1']);
    expect(await buried()).toEqual([]);

    new Processes(dir).enter('https://a.example#run_2');
    edit({ started: '1' });
    expect(await buried()).toEqual(['https://a.example#run_2']);
  });

  it('are not judged from another machine, whose pids mean something else', async () => {
    new Processes(dir).enter('https://a.example#run_1');
    edit({ pid: await pidOfTheDead(), machine: 'elsewhere' });
    expect(await buried()).toEqual([]);
  });

  it('are kept where their lease could not be ended, and forgotten where nothing can be read of them', async () => {
    new Processes(dir).enter('https://a.example#run_1');
    edit({ pid: await pidOfTheDead() });
    const failing = new Processes(dir).bury(() => Promise.reject(new Error('no ledger')));
    await expect(failing).rejects.toThrow('no ledger');
    writeFileSync(join(dir, 'run', 'torn.json'), '{"holder":');
    expect(await buried()).toEqual(['https://a.example#run_1']);
    expect(readdirSync(join(dir, 'run'))).toEqual([]);
  });
});
