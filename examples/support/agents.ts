/** What the examples need around them: an empty folder to run in, free ports, and the command as a user types it. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { main } from '../../src/cli/index.js';

/** Makes an empty folder the current one. */
export async function enterEmptyFolder(): Promise<{ remove(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-example-'));
  process.chdir(folder);
  return { remove: () => rm(folder, { recursive: true }) };
}

/** Runs a command and answers with the document it prints. */
// biome-ignore lint/suspicious/noExplicitAny: documents of many shapes
export async function holdfast(...words: string[]): Promise<any> {
  const written: string[] = [];
  const write = (text: string) => void written.push(text);
  const io = { out: write, err: write, env: {}, color: false, untilStopped: async () => {} };
  const code = await main([...words, '--json'], io);
  assert.equal(code, 0, written.join(''));
  return JSON.parse(written.join(''));
}

export async function freeUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as { port: number };
  await new Promise((closed) => server.close(closed));
  return `http://127.0.0.1:${port}`;
}

/** The folders `triage` and `billing`, on one ledger, each knowing the other. */
export async function initTriageAndBilling(): Promise<void> {
  const made = new Map<string, { url: string; thumbprint: string }>();
  for (const agent of ['triage', 'billing']) {
    const words = ['--agent', agent, '--dir', agent, '--url', await freeUrl(), '--ledger', '../ledger.db'];
    made.set(agent, await holdfast('init', ...words));
  }
  for (const [agent, peer] of [
    ['triage', 'billing'],
    ['billing', 'triage'],
  ] as const) {
    const { url, thumbprint } = made.get(peer) as { url: string; thumbprint: string };
    const permission = ['--contract', 'refund-dispute/1', '--skill', 'billing'];
    await holdfast('peer', 'add', '--dir', agent, '--url', url, '--key', thumbprint, ...permission);
  }
}
