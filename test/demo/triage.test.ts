import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createTestDatabase } from '../postgres/database.js';
import { GOOD, LIMIT_MS, REFUND, run } from './support.js';

const COMMAND = fileURLToPath(new URL('../../bin/holdfast.js', import.meta.url));

describe('holdfast demo triage', () => {
  it('[R-028][R-029][R-030][R-031][R-032][R-054][R-056][R-058][R-061][R-063][R-075][R-080][R-153][R-165][R-166][R-168] hands the case over, refuses the late note, refunds once', async () => {
    const { code, json } = await run();

    expect(json).toMatchObject({
      scenario: 'triage',
      mode: 'shared',
      variant: null,
      ok: true,
      problems: [],
      owner: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      epoch: 4,
      workItems: 1,
      effects: [REFUND],
      refused: [{ code: 'epoch_stale', presented: 3, current: 4 }],
      audit: { verified: true, entries: expect.any(Number) },
      leaks: 0,
      state: { notes: 0, pointer: { status: 'handed_off', owner: 'billing' } },
    });
    expect(json.attempts).toEqual([
      {
        system: 'payments',
        operation: 'refund',
        key: 'refund-pay_B',
        amount: '49.00',
        currency: 'EUR',
        outcome: 'done',
      },
    ]);
    expect(code).toBe(0);
  });

  it.each([
    ['V1', '[R-064][R-103][R-105] keeps the case with triage'],
    ['V1b', '[R-064][R-082] judges the corrected attempt for itself'],
    ['V1c', '[R-062][R-098] gives the case to a person instead'],
    ['V2', '[R-083][R-086] answers the same bytes with the same receipt'],
    ['V3', '[R-088][R-189][R-190] takes up its intent again, however often the sender dies'],
    ['V4', '[R-088][R-189][R-190] loses nothing when the receiver dies around its commit'],
    ['V5', '[R-047][R-170] refuses evidence that is not what its reference says'],
    ['V6', '[R-044][R-068][R-069][R-171] refuses what is not exactly one envelope of a known version'],
    ['V7', '[R-026][R-051][R-070][R-071][R-087] refuses who may not, without fetching anything'],
    ['V8', '[R-072][R-074] refuses other epochs and unknown cases, and makes no case'],
    ['V9', '[R-128] holds the cap against what the transcript says'],
    ['V10', '[R-094][R-095][R-096] asks a second agent once the offer to the first is closed by proof'],
    ['V12', "[R-045][R-167] refuses a sender's context and opens one of its own"],
    ['V14', '[R-082] refuses another body under the same key, first or last'],
    ['V15', '[R-050] connects nowhere that evidence may not lead'],
  ])(
    'variant %s %s',
    async (variant) => {
      const { code, json } = await run({ variant: variant.toLowerCase() });

      expect(json).toMatchObject({ variant, mode: 'shared', ...GOOD });
      expect(code).toBe(0);
    },
    LIMIT_MS,
  );

  it.each([undefined, 'V3', 'V4'])(
    'does the same on PostgreSQL, variant %s',
    async (variant) => {
      const database = await createTestDatabase();
      try {
        // Twice: what the first run left is not in the way of the second.
        for (let runs = 0; runs < 2; runs += 1) {
          const { code, json } = await run({
            db: database.url,
            ...(variant === undefined ? {} : { variant }),
          });
          expect(json).toMatchObject(GOOD);
          expect(code).toBe(0);
        }
      } finally {
        await database.drop();
      }
    },
    LIMIT_MS,
  );

  it('shows who owns the case at each step, stays up until it is asked to stop, and leaves nothing behind', async () => {
    const child = spawn(process.execPath, [COMMAND, 'demo', 'triage']);
    let text = '';
    child.stderr.pipe(process.stderr);
    const up = new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk) => {
        text += chunk;
        if (text.includes('Ctrl-C')) resolve();
      });
      child.once('exit', () => reject(new Error(`it ended: ${text}`)));
    });
    await up;
    const dir = /removes (?<dir>\S+)\.$/m.exec(text)?.groups?.dir ?? '';
    const card = /curl -s (?<url>\S+agent-card\.json)/.exec(text)?.groups?.url ?? '';

    const owners = [...text.matchAll(/^ {2,5}(\d)? +.* (triage|billing)@(\d)$/gm)].map(
      ([, step, owner, epoch]) => [step, `${owner}@${epoch}`],
    );
    expect(owners).toEqual([
      [undefined, 'triage@3'],
      ...['1', '2', '3', '4'].map((step) => [step, 'triage@3']),
      ...['5', '6', '7', '8', '9'].map((step) => [step, 'billing@4']),
    ]);
    expect(text).toContain('case show CASE-7001 --dir');
    expect(existsSync(dir)).toBe(true);
    expect(await fetch(card).then((response) => response.json())).toMatchObject({ name: 'billing' });
    child.kill('SIGHUP');
    const [code] = await once(child, 'exit');
    expect(code).toBe(0);
    expect(existsSync(dir)).toBe(false);
    await expect(fetch(card)).rejects.toThrow();
  });

  it('ends at SIGINT while it starts, with a status of its own and nothing left behind', async () => {
    const root = mkdtempSync(join(tmpdir(), 'holdfast-'));
    try {
      const child = spawn(process.execPath, [COMMAND, 'demo', 'triage'], {
        env: { ...process.env, TMPDIR: root },
      });
      let err = '';
      child.stderr.on('data', (chunk) => {
        err += chunk;
      });
      await once(child.stdout, 'data');
      child.kill('SIGINT');
      expect(await once(child, 'exit')).toEqual([130, null]);
      expect(err).toBe('');
      expect(readdirSync(root)).toEqual([]);
    } finally {
      rmSync(root, { recursive: true });
    }
  });

  it('says which variants there are, and starts nothing for another', async () => {
    await expect(run({ variant: 'V99' })).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringContaining('V1, V1b, V1c, V2, V3, V4, V5, V6, V7, V8, V9, V10, V12, V14, V15'),
    });
  });

  it('[R-188] fails where what happened is not what was written down', async () => {
    const { code, json } = await run({ variant: 'V1', expected: { epoch: 4, owner: 'billing' } });

    expect(json).toMatchObject({
      ok: false,
      problems: ['owner: expected "billing", found "triage"', 'epoch: expected 4, found 3'],
    });
    expect(code).toBe(1);
  });
});
