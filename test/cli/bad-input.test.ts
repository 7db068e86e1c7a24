import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Agent,
  CASE_FILE,
  CONTRACT,
  freePort,
  initAgent,
  introduce,
  type Ran,
  run,
  serve,
  TRANSCRIPT,
  temporaryFolder,
} from './support.js';

let folder: ReturnType<typeof temporaryFolder>;
let triage: Agent;
let billing: Agent;

beforeEach(async () => {
  folder = temporaryFolder();
  triage = await initAgent(folder.path, 'triage');
  billing = await initAgent(folder.path, 'billing');
  await introduce(triage, billing);
  await run('case', 'open', CASE_FILE, '--dir', triage.dir);
});

afterEach(() => folder.remove());

/**
 * All files of both agents and what the ledger says, so that "nothing changed" is looked at and not believed. What an agent notes for
 * itself of the ledger it saw, and of its processes, is no change.
 */
async function everything(): Promise<unknown> {
  const files = readdirSync(folder.path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('ledger.db'))
    .filter((entry) => !/\/(witness|run)$/.test(entry.parentPath))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => [path, readFileSync(path, 'base64')]);
  const shown = await run('case', 'show', 'CASE-7001', '--dir', triage.dir, '--json');
  return { files, case: shown.json };
}

/** Runs a command that must fail, and checks that it left everything as it was. */
async function refuse(...argv: string[]): Promise<Ran> {
  const before = await everything();
  const ran = await run(...argv);
  expect(await everything()).toEqual(before);
  expect(ran.out).toBe('');
  expect(ran.err.trim().split('\n')).toHaveLength(1);
  expect(ran.err).not.toMatch(/\n\s+at /);
  return ran;
}

function send(...more: string[]): string[] {
  const to = more.includes('--to') ? [] : ['--to', billing.url];
  const contract = more.includes('--contract') ? [] : ['--contract', CONTRACT];
  const file = more.includes('--file') ? [] : ['--file', CASE_FILE];
  return ['handoff', 'send', '--dir', triage.dir, ...file, ...to, ...contract, ...more];
}

describe('bad input changes nothing and says what is wrong', () => {
  it('an unknown configuration key', async () => {
    const file = join(triage.dir, 'holdfast.yaml');
    const whole = readFileSync(file, 'utf8');
    writeFileSync(file, whole.replace('listen:', 'lisen:'));
    const ran = await run('case', 'note', 'CASE-7001', 'hello', '--epoch', '1', '--dir', triage.dir);
    expect(ran.exit).toBe(2);
    expect(ran.err).toMatch(
      /lisen is not a known key; did you mean listen\? \(line \d+\).*\[config_invalid\]/,
    );
    writeFileSync(file, whole);
    const shown = await run('case', 'show', 'CASE-7001', '--dir', triage.dir, '--json');
    expect(shown.json.notes).toEqual([]);
  });

  it('a contract that is not configured, is not there, or is none', async () => {
    expect(await refuse(...send('--contract', 'loan-transfer/1'))).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/loan-transfer\/1.*contracts in holdfast\.yaml.*\[contract_missing\]/),
    });
    const file = join(triage.dir, 'holdfast.yaml');
    const whole = readFileSync(file, 'utf8');
    for (const [contract, said] of [
      ['loan-transfer/1', /no built-in contract loan-transfer\/1 \(there is refund-dispute\/1\)/],
      ['refund-dispute/2', /Did you mean refund-dispute\/1\?/],
      ['./missing.mjs', /module \.\/missing\.mjs cannot be loaded/],
      ['./empty.mjs', /empty\.mjs is neither a contract/],
    ] as const) {
      writeFileSync(join(triage.dir, 'empty.mjs'), 'export default {};');
      writeFileSync(file, whole.replace('contracts:\n  - refund-dispute/1', `contracts:\n  - ${contract}`));
      const ran = await run('config', 'check', '--dir', triage.dir);
      expect(ran).toMatchObject({ exit: 2, err: expect.stringMatching(said) });
    }
  });

  it('a version of a contract that is not there', async () => {
    expect(await refuse(...send('--contract', 'refund-dispute/2'))).toMatchObject({
      exit: 2,
      err: expect.stringMatching(
        /contracts names refund-dispute\/1\. Did you mean refund-dispute\/1\?.*\[contract_missing\]/,
      ),
    });
  });

  it('a configuration that would not start', async () => {
    const file = join(triage.dir, 'holdfast.yaml');
    const whole = readFileSync(file, 'utf8');
    const check = (text: string) => {
      writeFileSync(file, text);
      return run('config', 'check', '--dir', triage.dir);
    };
    expect(await check(`${whole}\nhandlers: ./gone.mjs\n`)).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/module \.\/gone\.mjs cannot be loaded.*\[config_invalid\]/),
    });
    writeFileSync(join(triage.dir, 'none.mjs'), 'export default {};');
    expect(await check(`${whole}\nhandlers: ./none.mjs\n`)).toMatchObject({
      exit: 2,
      err: expect.stringContaining('none.mjs is not a function'),
    });
    expect(
      await check(whole.replace('receives:\n  - refund-dispute/1', 'receives:\n  - refund-dispute/2')),
    ).toMatchObject({ exit: 2, err: expect.stringContaining('[contract_missing]') });
    const peer = whole.replace(/(peers:[\s\S]*?contracts:\s+)(- )?refund-dispute\/1/, '$1$2loan-transfer/1');
    expect(peer).not.toBe(whole);
    expect(await check(peer)).toMatchObject({
      exit: 0,
      err: expect.stringMatching(
        /warning: The peer \S+ is allowed loan-transfer\/1, which this agent does not know/,
      ),
    });
    expect(await check(whole)).toMatchObject({ exit: 0, err: '' });
  });

  it('evidence that seems to hold personal data, unless it is said what to do about it', async () => {
    for (const argv of [send('--evidence', TRANSCRIPT), ['evidence', 'add', TRANSCRIPT, '--dir', triage.dir]])
      expect(await refuse(...argv)).toMatchObject({
        exit: 2,
        err: expect.stringMatching(
          /transcript\.txt holds what looks like an e-mail address and what looks like a phone number.*--redact.*--as-is.*\[personal_data\]/,
        ),
      });
    expect((await run('evidence', 'add', TRANSCRIPT, '--as-is', '--dir', triage.dir)).exit).toBe(0);
  });

  it('options that do not fit the configuration', async () => {
    expect(await refuse('init', '--agent', 'Bad Name!', '--dir', join(folder.path, 'bad'))).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/^holdfast: --agent must be a name.*\[usage\]$/m),
    });
    const peer = ['peer', 'add', '--dir', triage.dir, '--url', 'http://127.0.0.1:9', '--key', 'short'];
    expect(await refuse(...peer, '--contract', CONTRACT, '--skill', 'billing')).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/^holdfast: --key must be the thumbprint.*\[usage\]$/m),
    });
  });

  it('a ledger that is a folder', async () => {
    const file = join(triage.dir, 'holdfast.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('../ledger.db', '..'));
    const ran = await run('case', 'list', '--dir', triage.dir);
    expect(ran.exit).toBe(10);
    expect(ran.err).toContain(`The ledger ${folder.path} cannot be opened: it is a folder.`);
  });

  it('an evidence file that is gone', async () => {
    expect(await refuse(...send('--evidence', join(folder.path, 'gone.txt')))).toMatchObject({
      exit: 2,
      err: expect.stringMatching(
        /gone\.txt cannot be read: there is no such file.*\[evidence_file_missing\]/,
      ),
    });
    expect(await refuse('evidence', 'add', join(folder.path, 'gone.txt'), '--dir', triage.dir)).toMatchObject(
      { exit: 2 },
    );
  });

  it('a peer that cannot be reached', async () => {
    expect(await refuse(...send('--evidence', TRANSCRIPT, '--redact'))).toMatchObject({
      exit: 5,
      err: expect.stringMatching(
        new RegExp(`${billing.url} cannot be reached.*Nothing was sent.*\\[peer_unreachable\\]`),
      ),
    });
  });

  it('a peer that is not configured', async () => {
    expect(await refuse(...send('--to', 'http://127.0.0.1:9'))).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/holdfast peer add.*\[peer_unknown\]/),
    });
  });

  it("a thumbprint that is not the peer's", async () => {
    await run(
      ...['peer', 'add', '--replace', '--dir', triage.dir, '--url', billing.url, '--key', triage.key],
      ...['--contract', CONTRACT, '--skill', 'billing'],
    );
    const running = await serve(billing.dir);
    try {
      expect(await refuse(...send('--evidence', TRANSCRIPT, '--redact'))).toMatchObject({
        exit: 5,
        err: expect.stringMatching(/key configured for .*thumbprint.*\[peer_key_mismatch\]/),
      });
    } finally {
      await running.stop();
    }
  });

  it('evidence that nobody serves', async () => {
    const running = await serve(billing.dir);
    try {
      expect(await refuse(...send('--evidence', TRANSCRIPT, '--redact'))).toMatchObject({
        exit: 5,
        err: expect.stringMatching(/fetches evidence from this agent.*holdfast serve/),
      });
    } finally {
      await running.stop();
    }
  });

  it('a malformed case file', async () => {
    const file = join(folder.path, 'broken.json');
    for (const [text, said] of [
      ['{"case_id":\n  "CASE-7001",,', /^holdfast: \S+broken\.json:2:15 is not strict JSON: syntax\. \[/],
      ['{"case_id": "CASE-7001", "case_id": "CASE-7002"}', /not strict JSON/],
      ['[]', /\[case_file_invalid\]/],
      ['{"case_id": "CASE 7001", "kind": "refund", "goal": "x"}', /case_id must be a case id/],
      ['{"case_id": "CASE-7001", "kind": "refund"}', /goal is required/],
      [
        '{"case_id": "CASE-7001", "kind": "refund", "goal": "x", "facts": [{"key": "a", "value": 1, "verified": true}]}',
        /facts\.0\.source is required.*\[fact_unsourced\]/,
      ],
    ] as const) {
      writeFileSync(file, text);
      for (const argv of [send('--file', file), ['case', 'open', file, '--dir', triage.dir]]) {
        const ran = await run(...argv);
        expect(ran).toMatchObject({ exit: 2, err: expect.stringMatching(said) });
      }
      expect(await refuse(...send('--file', file))).toMatchObject({ exit: 2 });
    }
    expect(await refuse(...send('--file', join(folder.path, 'none.json')))).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/none\.json cannot be read: there is no such file/),
    });
  });

  it('a database from the future', async () => {
    const file = join(folder.path, 'ledger.db');
    const db = new Database(file);
    db.prepare("INSERT INTO migrations (version, name, applied_at) VALUES (9999, 'later', '2099')").run();
    db.close();
    const before = statSync(file).mtimeMs;
    const ran = await run('case', 'list', '--dir', triage.dir);
    expect(ran).toMatchObject({ exit: 4, err: expect.stringMatching(/newer version.*\[schema_newer\]/) });
    expect(statSync(file).mtimeMs).toBe(before);
  });

  it('a port that is taken', async () => {
    const port = await freePort();
    const other: Server = createServer().listen(port, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    try {
      expect(await refuse('serve', '--dir', triage.dir, '--port', String(port))).toMatchObject({
        exit: 8,
        err: expect.stringMatching(new RegExp(`127\\.0\\.0\\.1:${port}.*--port.*\\[port_taken\\]`)),
      });
    } finally {
      other.close();
    }
  });

  it('kinds that differ from those in the ledger', async () => {
    const file = join(billing.dir, 'holdfast.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('100.00 EUR', '900.00 EUR'));
    expect(await refuse('serve', '--dir', billing.dir)).toMatchObject({
      exit: 9,
      err: expect.stringMatching(/kind refund.*kind list.*--replace.*\[kind_conflict\]/),
    });
    const kinds = async () =>
      (await run('kind', 'list', '--dir', triage.dir, '--json')).json.kinds[0].policy.caps;
    expect(await kinds()).toEqual({ refund: { amount: '100.00', currency: 'EUR' } });
    expect((await run('kind', 'apply', '--replace', '--dir', billing.dir)).exit).toBe(0);
    expect(await kinds()).toEqual({ refund: { amount: '900.00', currency: 'EUR' } });
  });

  it('wrong usage', async () => {
    for (const argv of [
      ['frobnicate'],
      ['case', 'frobnicate'],
      ['case', 'note', 'CASE-7001', 'text', '--dir', triage.dir],
      ['case', 'list', '--colour'],
      ['case', 'open', '--dir', triage.dir],
      ['case', 'frobnicate', '--help'],
      ['case', 'note', 'CASE-7001', ' ', '--epoch', '1', '--dir', triage.dir],
      ['evidence', 'add', TRANSCRIPT, '--redact', '--as-is', '--dir', triage.dir],
      ['case', 'note', 'CASE-7001', 'text', '--epoch', '1.5', '--dir', triage.dir],
      [
        'effect',
        'start',
        'CASE-7001',
        '--epoch',
        '1',
        '--key',
        'k',
        '--operation',
        'refund',
        '--amount',
        '49',
        '--dir',
        triage.dir,
      ],
      ['serve', '--port', '65536', '--dir', triage.dir],
    ]) {
      const ran = await run(...argv);
      expect(ran.exit).toBe(2);
      expect(ran.err).toMatch(/^holdfast: .*\[usage\]$/m);
    }
    expect(await run('case', 'list', '--dir', folder.path)).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/no readable holdfast\.yaml.*holdfast init/),
    });
  });

  it('asks which case is meant when two roots have the id', async () => {
    await run('case', 'open', CASE_FILE, '--dir', billing.dir);
    const note = ['case', 'note', 'CASE-7001', 'hello', '--epoch', '1', '--dir', triage.dir];
    const ran = await run(...note);
    expect(ran).toMatchObject({ exit: 2, err: expect.stringContaining('--root') });
    expect(ran.err).toContain(billing.url);
    expect((await run(...note, '--root', triage.url)).exit).toBe(0);
  });

  it('gives errors as one JSON document too', async () => {
    const ran = await run('case', 'show', 'NOPE', '--dir', triage.dir, '--json');
    expect(ran.json).toEqual({
      error: {
        code: 'case_unknown',
        message: expect.any(String),
        fields: [],
        data: { case_id: 'NOPE' },
        hint: expect.stringContaining('`holdfast case open` opens one'),
        retry: 'never',
        exit: 9,
      },
    });
    expect((await run('case', 'frobnicate', '--json')).json.error).toMatchObject({
      code: 'usage',
      hint: null,
      exit: 2,
    });
    appendFileSync(join(triage.dir, 'holdfast.yaml'), 'nonsense: 1\n');
    expect((await run('case', 'list', '--dir', triage.dir, '--json')).json.error.fields).toEqual([
      { path: 'nonsense', problem: expect.stringContaining('is not a known key') },
    ]);
  });
});
