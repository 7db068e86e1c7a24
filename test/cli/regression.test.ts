import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Agent, initAgent, type Ran, run, temporaryFolder } from './support.js';

let folder: ReturnType<typeof temporaryFolder>;
let triage: Agent;
let ledger: string;

beforeEach(async () => {
  folder = temporaryFolder();
  triage = await initAgent(folder.path, 'triage');
  ledger = join(folder.path, 'ledger.db');
  await at('kind', 'apply');
  for (const id of ['CASE-1', 'CASE-2']) await at('case', 'open', '--id', id, '--kind', 'refund');
});

afterEach(() => folder.remove());

const at = (...argv: string[]): Promise<Ran> => run(...argv, '--dir', triage.dir);
const note = (id: string, text: string) => at('case', 'note', id, text, '--epoch', '1');
const path = (name: string) => join(folder.path, name);

/** The ledger as it was when it was copied, and no witness on this machine. */
function lose(): void {
  copyFileSync(path('copy.db'), ledger);
  rmSync(join(triage.dir, 'witness'), { recursive: true });
}

describe('a head kept elsewhere', () => {
  it('is signed, and says that the ledger still holds it, also after a change of key', async () => {
    expect((await at('audit', 'head', '--out', path('heads.jsonl'))).out).toContain('the heads of 2 cases');
    await note('CASE-1', 'later');
    await at('key', 'rotate');
    expect(await at('audit', 'check-head', path('heads.jsonl'))).toMatchObject({
      exit: 0,
      out: expect.stringContaining('2 cases (signed)'),
    });
  });

  it('shows which cases the ledger has lost something of, and closes them if asked to', async () => {
    copyFileSync(ledger, path('copy.db'));
    await note('CASE-1', 'one');
    await at('case', 'open', '--id', 'CASE-3', '--kind', 'refund');
    await at('audit', 'head', '--out', path('heads.jsonl'));
    await at('audit', 'export', '--out', path('export.jsonl'));
    lose();
    for (const file of ['heads.jsonl', 'export.jsonl']) {
      const checked = await at('audit', 'check-head', path(file), '--json');
      expect(checked.exit).toBe(13);
      expect(checked.json).toMatchObject({
        verdict: 'regressed',
        signed: file === 'heads.jsonl',
        behind: [
          { ref: { caseId: 'CASE-1' }, reason: 'audit_regressed', witnessed: { seq: 2 }, found: { seq: 1 } },
          { ref: { caseId: 'CASE-3' }, reason: 'case_missing', found: {} },
        ],
      });
    }
    expect((await at('attention', '--json')).json).toEqual({ items: [] });
    await at('audit', 'check-head', path('heads.jsonl'), '--quarantine');
    expect((await at('attention', '--json')).json.items).toMatchObject([
      { what: 'case_quarantined', ref: { caseId: 'CASE-1' } },
      { what: 'case_quarantined', ref: { caseId: 'CASE-3' } },
    ]);
    expect(await note('CASE-1', 'two')).toMatchObject({
      exit: 9,
      err: expect.stringContaining('case_quarantined'),
    });
    expect((await note('CASE-2', 'goes on')).exit).toBe(0);
    const shown = await at('case', 'show', 'CASE-1');
    expect(shown.out).toMatch(/quarantine +audit_regressed, since/);
    expect(shown.out).toMatch(/witnessed +entry 2/);
  });

  it('shows a chain that went on in another way', async () => {
    copyFileSync(ledger, path('copy.db'));
    await note('CASE-1', 'one');
    await at('audit', 'head', '--out', path('heads.jsonl'));
    lose();
    await note('CASE-1', 'another');
    const checked = await at('audit', 'check-head', path('heads.jsonl'), '--json');
    expect(checked.exit).toBe(11);
    expect(checked.json).toMatchObject({ verdict: 'forked', behind: [{ reason: 'audit_forked' }] });
  });

  it('counts only as it was signed, and by a key that is known', async () => {
    await at('audit', 'head', '--out', path('heads.jsonl'));
    const text = readFileSync(path('heads.jsonl'), 'utf8');
    for (const changed of [
      text.replace('"seq":1', '"seq":2'),
      `${text}${text.split('\n')[1]}\n`,
      text.split('\n').slice(0, 2).join('\n'),
      text.replace('{"head":"e', '{"head":"f'),
    ]) {
      writeFileSync(path('changed.jsonl'), changed);
      expect(await at('audit', 'check-head', path('changed.jsonl'))).toMatchObject({ exit: 11 });
    }
    const billing = await initAgent(folder.path, 'billing');
    const check = (...more: string[]) =>
      run('audit', 'check-head', path('heads.jsonl'), '--dir', billing.dir, ...more);
    expect((await check()).exit).toBe(11);
    expect((await check('--key', triage.key)).exit).toBe(0);
  });
});

describe('the keys of an agent', () => {
  it('are listed, prepared and changed, and every step says what peers do', async () => {
    const prepared = (await at('key', 'prepare', '--json')).json;
    expect(prepared.thumbprint).toBe(triage.key);
    expect((await at('key', 'prepare')).out).toContain(`--key ${triage.key} --next-key ${prepared.next}`);
    const billing = await initAgent(folder.path, 'billing');
    const peer = [
      'peer',
      'add',
      '--dir',
      billing.dir,
      '--url',
      triage.url,
      '--contract',
      'refund-dispute/1',
      '--skill',
      'billing',
    ];
    expect(
      (await run(...peer, '--key', triage.key, '--next-key', prepared.next, '--json')).json.peer,
    ).toMatchObject({
      key: triage.key,
      next_key: prepared.next,
    });
    expect((await run(...peer, '--replace', '--key', triage.key, '--next-key', 'short')).err).toContain(
      '--next-key must be the thumbprint',
    );

    const rotated = (await at('key', 'rotate', '--json')).json;
    expect(rotated).toEqual({
      url: triage.url,
      thumbprint: prepared.next,
      retired: triage.key,
      prepared: true,
    });
    expect((await at('key', 'list', '--json')).json.keys).toMatchObject([
      { thumbprint: prepared.next, state: 'in_use' },
      { thumbprint: triage.key, state: 'retired' },
    ]);
    expect((await at('identity', '--json')).json).toMatchObject({
      thumbprint: prepared.next,
      next: null,
      retired: [triage.key],
    });
    expect((await at('key', 'rotate')).out).toContain('peers refuse this agent until each has been told');
  });
});
