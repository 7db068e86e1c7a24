import { copyFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type Agent,
  CASE_FILE,
  CONTRACT,
  initPair,
  run,
  serve,
  TRANSCRIPT,
  temporaryFolder,
} from '../cli/support.js';

let folder: ReturnType<typeof temporaryFolder>;
let triage: Agent;
let billing: Agent;
let ledger: string;

beforeEach(async () => {
  folder = temporaryFolder();
  ({ triage, billing } = await initPair(folder.path));
  ledger = join(folder.path, 'ledger.db');
});

afterEach(() => folder.remove());

const at = (agent: Agent, ...argv: string[]) => run(...argv, '--dir', agent.dir, '--json');
const why = ['--person', 'ann', '--reason', 'restored from the backup of last night'];
const row = async (agent: Agent) => (await at(agent, 'case', 'show', 'CASE-7001')).json.case;
const copy = () => copyFileSync(ledger, `${ledger}.copy`);

function lose(): void {
  for (const ending of ['-wal', '-shm']) rmSync(`${ledger}${ending}`, { force: true });
  copyFileSync(`${ledger}.copy`, ledger);
}

/** Triage opens a case, which is all that is kept, and hands it to billing. */
async function handOver(): Promise<void> {
  const nodes = [await serve(triage.dir), await serve(billing.dir)];
  await at(triage, 'case', 'open', CASE_FILE);
  await Promise.all(nodes.map((node) => node.stop()));
  copy();
  const again = [await serve(triage.dir), await serve(billing.dir)];
  const sent = await at(
    ...([triage, 'handoff', 'send', '--file', CASE_FILE, '--to', billing.url] as const),
    ...['--contract', CONTRACT, '--evidence', TRANSCRIPT, '--redact'],
  );
  expect(sent.json).toMatchObject({ state: 'accepted', epoch: 2 });
  await Promise.all(again.map((node) => node.stop()));
}

it('lets a case go on that the ledger has lost an acceptance of, for everybody who has seen that', async () => {
  await handOver();
  lose();
  const note = ['case', 'note', 'CASE-7001', 'text', '--epoch'];
  expect(await at(billing, ...note, '2')).toMatchObject({
    exit: 9,
    json: { error: { code: 'case_quarantined' } },
  });
  expect(await row(triage)).toMatchObject({ owner: triage.url, epoch: 1 });

  const shown = await at(triage, 'attention', 'show', 'CASE-7001');
  expect(shown.json.item.data).toMatchObject({ reason: 'epoch_regressed', witnessed: { epoch: 2 } });
  const [command] = shown.json.commands;
  expect(command).toBe('holdfast attention resolve CASE-7001 --person ID --reason "TEXT"');
  expect((await run('attention', 'show', 'CASE-7001', '--dir', triage.dir)).out).toMatch(
    /^witnessed +epoch 2, entry \d+[\s\S]*^1\. The ledger has lost something/m,
  );
  const resolve = ['attention', 'resolve', 'CASE-7001', ...why];
  for (const wrong of [
    ['--state', 'done', '--outcome', 'x'],
    ['--seen-epoch', '0'],
    ['--minutes', 'x'],
  ]) {
    expect(await at(triage, ...resolve, ...wrong)).toMatchObject({
      exit: 2,
      json: { error: { code: 'usage' } },
    });
  }
  expect(await at(billing, ...resolve)).toMatchObject({ exit: 3, json: { error: { code: 'not_owner' } } });

  const resolved = await at(triage, ...resolve, '--minutes', '90', '--record', 'backups=2026-02-28');
  expect(resolved).toMatchObject({
    exit: 0,
    json: { case: { owner: `person:ann@${triage.url}`, epoch: 3 } },
  });
  // Each opening compares with all that was seen: what a person gave up is not held against the case again.
  for (const agent of [triage, billing, triage]) {
    expect((await at(agent, 'attention')).json.items).toEqual([]);
    expect(await at(agent, 'audit', 'verify')).toMatchObject({ exit: 0, json: { verified: true } });
  }
  expect(await at(billing, ...note, '2')).toMatchObject({
    exit: 3,
    json: { error: { code: 'epoch_stale' } },
  });
  await at(triage, 'case', 'return', 'CASE-7001', '--epoch', '3', ...why);
  expect((await at(triage, ...note, '4')).exit).toBe(0);
  expect((await at(triage, 'db', 'doctor')).json.findings ?? []).not.toContainEqual(
    expect.objectContaining({ severity: 'unsafe' }),
  );
}, 30_000);

it('holds a second loss against the case, and goes on above that', async () => {
  await handOver();
  lose();
  const resolve = ['attention', 'resolve', 'CASE-7001', ...why];
  expect((await at(triage, ...resolve)).json.case.epoch).toBe(3);
  copy();
  await at(triage, 'case', 'return', 'CASE-7001', '--epoch', '3', ...why);
  lose();
  const items = async (agent: Agent) => (await at(agent, 'attention')).json.items;
  expect(await items(triage)).toMatchObject([
    { data: { reason: 'epoch_regressed', witnessed: { epoch: 4 } } },
  ]);
  expect((await at(triage, ...resolve, '--seen-epoch', '6')).json.case.epoch).toBe(7);
  for (const agent of [triage, billing]) expect(await items(agent)).toEqual([]);
}, 30_000);

it('opens a case anew that the ledger has lost altogether', async () => {
  await at(triage, 'kind', 'apply');
  copy();
  await at(triage, 'case', 'open', CASE_FILE);
  lose();
  const { item, commands } = (await at(triage, 'attention', 'show', 'CASE-7001')).json;
  expect(item.data.reason).toBe('case_missing');
  expect(commands[0]).toContain('--kind KIND');
  const resolve = ['attention', 'resolve', 'CASE-7001', ...why];
  expect(await at(triage, ...resolve)).toMatchObject({ exit: 2, json: { error: { code: 'usage' } } });
  expect((await at(triage, ...resolve, '--kind', 'refund')).json.case).toMatchObject({
    epoch: 2,
    kind: 'refund',
  });
  expect((await at(triage, 'attention')).json.items).toEqual([]);
  expect((await at(triage, 'audit', 'verify')).json.verified).toBe(true);
}, 30_000);

it('asks for the highest epoch where a kept head does not tell it', async () => {
  await at(triage, 'case', 'open', CASE_FILE);
  copy();
  await at(triage, 'case', 'note', 'CASE-7001', 'one', '--epoch', '1');
  const heads = join(folder.path, 'heads.jsonl');
  await at(triage, 'audit', 'head', '--out', heads);
  lose();
  expect((await at(triage, 'audit', 'compare', heads, '--quarantine')).exit).toBe(13);
  expect((await at(triage, 'attention', 'show', 'CASE-7001')).json.commands[0]).toContain('--seen-epoch N');
  const resolve = ['attention', 'resolve', 'CASE-7001', ...why];
  const refused = await at(triage, ...resolve);
  expect(refused.json.error.message).toContain('say the highest that anybody has seen');
  expect((await at(triage, ...resolve, '--seen-epoch', '1')).json.case.epoch).toBe(2);
}, 30_000);
