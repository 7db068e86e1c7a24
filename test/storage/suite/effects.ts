import { describe, expect, it } from 'vitest';
import type { Money } from '../../../src/core/index.js';
import type { LedgerStore } from '../../../src/ledger/index.js';
import {
  acceptance,
  asBilling,
  asTriage,
  BILLING,
  handedOver,
  KIND,
  ledgerWithCase,
  type OpenLedger,
  offered,
  ref,
  start,
  TRIAGE,
} from './fixtures.js';

const eur = (amount: string): Money => ({ amount, currency: 'EUR' });

async function states(ledger: LedgerStore): Promise<string[]> {
  return (await ledger.listEffects(ref())).map((effect) => `${effect.key}:${effect.state}`);
}

export function effectSuite(open: OpenLedger): void {
  describe('effects', () => {
    it('commits an effect as started, with its limit, and settles it once', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const started = await ledger.startEffect({ ...asTriage, ...start('r1') });
      expect(started).toEqual({
        ref: ref(),
        ...start('r1'),
        epoch: 3,
        owner: TRIAGE,
        state: 'started',
        startedAt: clock.in(0),
        startedSeq: 2,
        limitAt: clock.in(30_000),
        settledAt: null,
        outcome: null,
      });
      const settle = { ...asTriage, key: 'r1', state: 'done', outcome: 're_1' } as const;
      const done = await ledger.settleEffect(settle);
      expect(done).toMatchObject({ state: 'done', outcome: 're_1', settledAt: clock.in(0) });
      const length = (await ledger.readAudit(ref())).length;
      expect(await ledger.settleEffect(settle)).toEqual(done);
      expect(await ledger.readAudit(ref())).toHaveLength(length);
      for (const other of [
        { outcome: 're_2' },
        { state: 'failed' as const },
        { state: 'unknown' as const },
      ]) {
        await expect(ledger.settleEffect({ ...settle, ...other })).rejects.toMatchObject({
          code: 'effect_settled',
        });
      }
      await expect(ledger.settleEffect({ ...settle, key: 'r2' })).rejects.toMatchObject({
        code: 'effect_unknown',
      });
      expect(await ledger.listEffects(ref())).toEqual([done]);
    });

    it('lets a key start again only once it is proved not to have happened', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const again = () => ledger.startEffect({ ...asTriage, ...start('r1') });
      await again();
      await expect(again()).rejects.toMatchObject({ code: 'effect_duplicate', data: { state: 'started' } });
      clock.advance(30_000);
      await expect(again()).rejects.toMatchObject({ code: 'effect_duplicate', data: { state: 'unknown' } });
      await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'failed', outcome: null });
      expect(await again()).toMatchObject({ state: 'started', startedAt: clock.in(0), settledAt: null });
      await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' });
      await expect(again()).rejects.toMatchObject({ code: 'effect_duplicate', data: { state: 'done' } });
      expect(await states(ledger)).toEqual(['r1:done']);
    });

    it('settles the start it was told, never a later one of the same key', async () => {
      const { ledger } = await ledgerWithCase(open);
      const first = await ledger.startEffect({ ...asTriage, ...start('r1') });
      const settle = { ...asTriage, key: 'r1', startedSeq: first.startedSeq, outcome: null };
      await ledger.settleEffect({ ...settle, state: 'failed' });
      const second = await ledger.startEffect({ ...asTriage, ...start('r1') });
      for (const state of ['failed', 'unknown', 'done'] as const) {
        await expect(ledger.settleEffect({ ...settle, state })).rejects.toMatchObject({
          code: 'effect_settled',
        });
      }
      expect(await ledger.listEffects(ref())).toEqual([second]);
      await ledger.settleEffect({ ...settle, startedSeq: second.startedSeq, state: 'done' });
      expect(await states(ledger)).toEqual(['r1:done']);
    });

    it('[R-166] starts a key once, over all epochs and owners', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1', '20.00') });
      await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' });
      await handedOver(ledger, clock);
      await expect(ledger.startEffect({ ...asBilling, ...start('r1', '20.00') })).rejects.toMatchObject({
        code: 'effect_duplicate',
      });
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, () => ledger.startEffect({ ...asBilling, ...start('r2', '20.00') })),
      );
      expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
      expect(await states(ledger)).toEqual(['r1:done', 'r2:started']);
    });

    it('counts as unknown past its limit, without anybody writing so, and then no longer holds the case', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      clock.advance(29_999);
      expect(await states(ledger)).toEqual(['r1:started']);
      clock.advance(1);
      expect(await states(ledger)).toEqual(['r1:unknown']);
      await handedOver(ledger, clock);
      await ledger.settleEffect({ ...asBilling, key: 'r1', state: 'done', outcome: 're_1' });
      expect(await ledger.listEffects(ref())).toMatchObject([{ state: 'done', owner: TRIAGE, epoch: 3 }]);
    });

    it('settles unknown by name, and from there only to done or failed', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      const settle = { ...asTriage, key: 'r1', outcome: null };
      await ledger.settleEffect({ ...settle, state: 'unknown' });
      await expect(ledger.settleEffect({ ...settle, state: 'unknown' })).resolves.toMatchObject({
        state: 'unknown',
      });
      await expect(ledger.settleEffect({ ...settle, state: 'unknown', outcome: 'x' })).rejects.toMatchObject({
        code: 'effect_settled',
      });
      await expect(ledger.settleEffect({ ...settle, state: 'failed' })).resolves.toMatchObject({
        state: 'failed',
      });
    });

    it("[R-075][R-091][R-182] keeps a former owner's late settlement as a report, and leaves settling to the owner", async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1') });
      clock.advance(30_000);
      await handedOver(ledger, clock);
      await expect(
        ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' }),
      ).rejects.toMatchObject({ code: 'epoch_stale', data: { presented: 3, current: 4 } });
      expect(await states(ledger)).toEqual(['r1:unknown']);
      expect((await ledger.readAudit(ref())).at(-1)).toMatchObject({
        type: 'effect_reported',
        actor: TRIAGE,
        rule: 'epoch_stale',
        data: { key: 'r1', state: 'done', outcome: 're_1', presented: 3, current: 4 },
      });
    });

    it('refuses amounts, keys and operations that are none', async () => {
      const { ledger } = await ledgerWithCase(open);
      const bad = [
        start('r1', '-1'),
        start('r1', '1e3'),
        { ...start('r1'), amount: { amount: '1', currency: 'euro' } },
        start('a key'),
        start(''),
        start('r1', '1', 'please refund'),
      ];
      for (const effect of bad) {
        await expect(ledger.startEffect({ ...asTriage, ...effect })).rejects.toMatchObject({ code: 'usage' });
      }
      expect(await ledger.listEffects(ref())).toEqual([]);
    });
  });

  describe('policy', () => {
    it('[R-127] bounds the sum of started, done and unknown amounts by the cap', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      await ledger.startEffect({ ...asBilling, ...start('r1', '20.00') });
      await ledger.settleEffect({ ...asBilling, key: 'r1', state: 'done', outcome: 're_1' });
      await ledger.startEffect({ ...asBilling, ...start('r2', '20.00') });
      await expect(ledger.startEffect({ ...asBilling, ...start('r3', '10.01') })).rejects.toMatchObject({
        code: 'cap_exceeded',
        message: '10.01 EUR would pass the cap of 50.00 EUR on refund, of which 40.00 is used.',
        data: {
          operation: 'refund',
          reason: 'sum',
          cap: '50.00',
          currency: 'EUR',
          used: '40.00',
          asked: '10.01',
        },
      });
      clock.advance(30_000);
      await expect(ledger.startEffect({ ...asBilling, ...start('r3', '10.01') })).rejects.toMatchObject({
        code: 'cap_exceeded',
      });
      await ledger.settleEffect({ ...asBilling, key: 'r2', state: 'failed', outcome: null });
      await expect(ledger.startEffect({ ...asBilling, ...start('r3', '30') })).resolves.toBeDefined();
      expect(await states(ledger)).toEqual(['r1:done', 'r2:failed', 'r3:started']);
    });

    it('counts what an earlier owner spent', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1', '40.00') });
      await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: 're_1' });
      await handedOver(ledger, clock);
      await expect(ledger.startEffect({ ...asBilling, ...start('r2', '10.01') })).rejects.toMatchObject({
        code: 'cap_exceeded',
      });
      await expect(ledger.startEffect({ ...asBilling, ...start('r2', '10.00') })).resolves.toBeDefined();
    });

    it("[R-127] holds the kind's policy where the envelope said nothing", async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      const silent = { caps: {}, prohibitions: [], operations: ['refund', 'publish', 'erase'] };
      await ledger.accept(acceptance(clock, { constraints: silent }));
      const attempt = (effect: ReturnType<typeof start>) => ledger.startEffect({ ...asBilling, ...effect });
      await expect(attempt(start('r1', '100.01'))).rejects.toMatchObject({
        code: 'cap_exceeded',
        data: { cap: '100.00' },
      });
      await expect(attempt(start('p1', null, 'publish'))).rejects.toMatchObject({
        code: 'operation_prohibited',
        data: { operation: 'publish' },
      });
      await expect(attempt(start('e1', null, 'erase'))).rejects.toMatchObject({
        code: 'operation_not_permitted',
      });
      expect(await ledger.listEffects(ref())).toEqual([]);
      expect((await ledger.readAudit(ref())).slice(-3)).toMatchObject(
        ['cap_exceeded', 'operation_prohibited', 'operation_not_permitted'].map((rule) => ({
          type: 'write_refused',
          rule,
        })),
      );
      await expect(attempt(start('r1', '100.00'))).resolves.toBeDefined();
    });

    it('takes the smaller of two caps, whichever it is', async () => {
      for (const [agreed, most] of [
        ['500.00', '100.00'],
        ['5.00', '5.00'],
      ] as const) {
        const { ledger, clock } = await ledgerWithCase(open);
        const constraints = { caps: { refund: eur(agreed) }, prohibitions: [], operations: ['refund'] };
        await ledger.accept(acceptance(clock, { constraints }));
        await expect(
          ledger.startEffect({ ...asBilling, ...start('r1', `${most.slice(0, -1)}1`) }),
        ).rejects.toMatchObject({ data: { cap: most } });
        await expect(ledger.startEffect({ ...asBilling, ...start('r1', most) })).resolves.toBeDefined();
      }
    });

    it('[R-127] refuses by the cap however large the sum is', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.startEffect({ ...asTriage, ...start('r1', '1.00') });
      for (const asked of ['999999999999999', '999999999999999.9999']) {
        await expect(ledger.startEffect({ ...asTriage, ...start('r2', asked) })).rejects.toMatchObject({
          code: 'cap_exceeded',
          data: { reason: 'sum', asked },
        });
      }
      expect((await ledger.readAudit(ref())).at(-1)).toMatchObject({ rule: 'cap_exceeded' });
    });

    it('refuses under a cap what cannot be added up', async () => {
      const { ledger } = await ledgerWithCase(open);
      await expect(ledger.startEffect({ ...asTriage, ...start('r1', null) })).rejects.toMatchObject({
        code: 'cap_exceeded',
        message: 'Under the cap of 100.00 EUR on refund an amount must be given.',
        data: { reason: 'amount_missing', asked: null, used: '0.00' },
      });
      const dollars = { ...start('r1'), amount: { amount: '1.00', currency: 'USD' } };
      await expect(ledger.startEffect({ ...asTriage, ...dollars })).rejects.toMatchObject({
        message: '1.00 USD is not in the currency of the cap of 100.00 EUR on refund.',
        data: { reason: 'currency_differs' },
      });
      await ledger.startEffect({ ...asTriage, ...start('n1', null, 'notify') });
      const capped = { ...KIND, policy: { ...KIND.policy, caps: { notify: eur('1.00') } } };
      await ledger.putKind('acme', capped, { replace: true });
      await expect(
        ledger.startEffect({ ...asTriage, ...start('n2', '0.10', 'notify') }),
      ).rejects.toMatchObject({ data: { reason: 'sum_unknown', used: null } });
    });

    it('[R-127] permits by agent, or by contract under *, and a contract always narrows', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const notify = start('n1', null, 'notify');
      await expect(ledger.startEffect({ ...asTriage, ...notify })).resolves.toBeDefined();
      await ledger.settleEffect({ ...asTriage, key: 'n1', state: 'failed', outcome: null });
      await handedOver(ledger, clock);
      await expect(ledger.startEffect({ ...asBilling, ...notify })).rejects.toMatchObject({
        code: 'operation_not_permitted',
      });
      await ledger.accept(
        acceptance(clock, { sender: BILLING, epoch: 4, toAgent: TRIAGE, constraints: silentFor('refund') }),
      );
      const asTriageAgain = { ...asTriage, epoch: 5 };
      await expect(ledger.startEffect({ ...asTriageAgain, ...notify })).rejects.toMatchObject({
        code: 'operation_not_permitted',
      });
      await expect(ledger.startEffect({ ...asTriageAgain, ...start('r1', '1.00') })).resolves.toBeDefined();
    });

    it('permits nothing to an opener whom the kind does not name', async () => {
      const { ledger } = await ledgerWithCase(open);
      await ledger.openCase({ ref: ref('CASE-2'), kind: 'refund', owner: BILLING, epoch: 1, actor: BILLING });
      for (const operation of ['refund', 'constructor', '__proto__']) {
        await expect(
          ledger.startEffect({
            ref: ref('CASE-2'),
            writer: BILLING,
            epoch: 1,
            ...start('r1', '1.00', operation),
          }),
        ).rejects.toMatchObject({ code: 'operation_not_permitted' });
      }
    });

    it('holds prohibitions that were agreed on the case', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      const constraints = { caps: {}, prohibitions: ['refund'], operations: ['refund'] };
      await ledger.accept(acceptance(clock, { constraints }));
      await expect(ledger.startEffect({ ...asBilling, ...start('r1', '1.00') })).rejects.toMatchObject({
        code: 'operation_prohibited',
      });
    });
  });
}

function silentFor(operation: string) {
  return { caps: {}, prohibitions: [], operations: [operation] };
}
