import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { runTriageDemo, type TriageDemoOptions, VARIANT_NAMES } from '../../src/demo/index.js';

async function run(options: Partial<TriageDemoOptions> & { variant?: string } = {}) {
  const chunks: string[] = [];
  const out = new Writable({
    write(chunk, _encoding, done) {
      chunks.push(String(chunk));
      done();
    },
  });
  const code = await runTriageDemo({ once: true, json: true, out, color: false, ...options });
  const text = chunks.join('');
  return { code, text, json: options.json === false ? null : JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') };
}

const REFUND = { operation: 'refund', amount: '49.00', currency: 'EUR', key: 'refund-pay_B', epoch: 4, state: 'done' };

describe('holdfast demo triage', () => {
  it('[R-028][R-029][R-030][R-031][R-032][R-054][R-056][R-058][R-061][R-063][R-075][R-153][R-165][R-166][R-168] hands the case over, refuses the late note, refunds once', async () => {
    const { code, json } = await run();

    expect(json).toMatchObject({
      scenario: 'triage',
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

  it.each(VARIANT_NAMES.map((name) => [`${TITLES[name] ?? ''} ${name}`, name]))(
    '%s comes to what is written down for it',
    async (_title, variant) => {
      const { code, json } = await run({ variant });

      expect(json).toMatchObject({ variant, problems: [], ok: true, leaks: 0, audit: { verified: true } });
      expect(code).toBe(0);
    },
  );
});
