import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createTestDatabase } from '../postgres/database.js';
import { GOOD, LIMIT_MS, REFUND, run } from './support.js';

const COMMAND = fileURLToPath(new URL('../../bin/holdfast.js', import.meta.url));

describe('holdfast demo triage --mode separate', () => {
  it('[R-060][R-061][R-063][R-075][R-080] lets go of the case only with the receipt, and lets nobody act until then', async () => {
    const { code, json } = await run({ mode: 'separate' });

    expect(json).toMatchObject({
      mode: 'separate',
      variant: null,
      ...GOOD,
      epoch: 4,
      workItems: 1,
      effects: [REFUND],
      refused: [
        { of: 'a refund by triage', code: 'effects_frozen' },
        { code: 'epoch_stale', presented: 3, current: 4 },
      ],
      state: {
        acting: ['billing'],
        cases: { triage: ['CASE-7001'], billing: ['CASE-7001'] },
        pointer: { status: 'handed_off', owner: 'billing' },
        trail: [
          { at: 'offer on its way', acting: [] },
          { at: 'evidence fetched', acting: [] },
          { at: 'answer on its way', acting: ['billing'] },
        ],
      },
    });
    expect(json.attempts).toHaveLength(1);
    expect(json.observed.instants).toBeGreaterThan(10);
    expect(code).toBe(0);
  });

  it.each([
    ['V1', '[R-064][R-103][R-105] keeps the case with triage'],
    ['V1b', '[R-064][R-082] judges the corrected attempt for itself'],
    ['V1c', '[R-062][R-098] gives the case to a person instead, in the ledger of the sender'],
    ['V2', '[R-083][R-086] answers the same bytes with the same receipt'],
    ['V3', '[R-065][R-088][R-189][R-190] takes up its intent again, however often the sender dies'],
    ['V4', '[R-088][R-189][R-190] loses nothing when the receiver dies around its commit'],
    ['V5', '[R-047][R-170] refuses evidence that is not what its reference says'],
    ['V6', '[R-044][R-068][R-069][R-171] refuses what is not exactly one envelope of a known version'],
    ['V7', '[R-026][R-051][R-070][R-071][R-087] refuses who may not, without fetching anything'],
    ['V8', '[R-072][R-074] takes in a case of the sender itself, and no case of others that it cannot prove'],
    ['V9', '[R-128] holds the cap against what the transcript says'],
    ['V10', '[R-094][R-095][R-096] asks a second agent once the offer to the first is closed by proof'],
    ['V12', "[R-045][R-167] refuses a sender's context and opens one of its own"],
    ['V14', '[R-082][R-084] refuses another body under the same key, meanwhile or last'],
    ['V15', '[R-050] connects nowhere that evidence may not lead'],
  ])(
    'variant %s %s',
    async (variant) => {
      const { code, json } = await run({ mode: 'separate', variant });

      expect(json).toMatchObject({ variant, mode: 'separate', ...GOOD });
      expect(code).toBe(0);
    },
    LIMIT_MS,
  );

  it(
    '[R-189] does the same with a PostgreSQL database each',
    async () => {
      const triage = await createTestDatabase();
      const billing = await createTestDatabase();
      try {
        // What the first run left is not in the way of the next.
        for (const variant of [undefined, 'V3', 'V4']) {
          const { code, json } = await run({
            mode: 'separate',
            db: triage.url,
            dbBilling: billing.url,
            ...(variant === undefined ? {} : { variant }),
          });
          expect(json, variant).toMatchObject(GOOD);
          expect(code).toBe(0);
        }
        const owners = 'SELECT DISTINCT owner FROM holdfast.cases';
        expect(await triage.query(owners)).toHaveLength(3);
        expect(await billing.query(owners)).toHaveLength(3);
      } finally {
        await triage.drop();
        await billing.drop();
      }
    },
    LIMIT_MS,
  );

  it('shows both ledgers at each step', async () => {
    const child = spawn(process.execPath, [COMMAND, 'demo', 'triage', '--mode', 'separate', '--once']);
    let text = '';
    child.stderr.pipe(process.stderr);
    child.stdout.on('data', (chunk) => {
      text += chunk;
    });
    const [code] = await once(child, 'close');

    const rows = [...text.matchAll(/^ {2,5}(\d) .* ((?:triage|billing)@\d(?: held)?) +(-|billing@\d)$/gm)];
    expect(rows.map(([, ...columns]) => columns)).toEqual([
      ...['1', '2', '3', '4'].map((step) => [step, 'triage@3 held', '-']),
      ['5', 'triage@3 held', 'billing@4'],
      ...['6', '7', '8', '9'].map((step) => [step, 'billing@4', 'billing@4']),
    ]);
    expect(code).toBe(0);
  });

  it.each([
    [{ mode: 'shared', dbBilling: 'postgres://h/billing' }, /--db-billing goes with --mode separate/],
    [{ mode: 'separate', db: 'postgres://h/triage' }, /or neither/],
    [{ mode: 'separate', dbBilling: 'postgres://h/billing' }, /or neither/],
    [
      { mode: 'separate', db: 'postgres://a@h/one', dbBilling: 'postgres://b@h/one' },
      /name the same database/,
    ],
  ] as const)('starts nothing with databases that do not go with the mode: %j', async (options, words) => {
    await expect(run(options)).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(words),
    });
  });
});
