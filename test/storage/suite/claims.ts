import { describe, expect, it } from 'vitest';
import type { LedgerStore } from '../../../src/ledger/index.js';
import {
  acceptance,
  asBilling,
  asTriage,
  BILLING,
  handedOver,
  ledgerWithCase,
  type OpenLedger,
  offered,
  openCase,
  ref,
  TRIAGE,
} from './fixtures.js';

const LEASE_MS = 1000;

const ofTriage = (holder: string, limit = 10) => ({ tenant: 'acme', agent: TRIAGE, holder, limit });
const ofBilling = (holder: string, limit = 10) => ({ tenant: 'acme', agent: BILLING, holder, limit });

async function cases(
  ledger: LedgerStore,
  claim: Parameters<LedgerStore['claimOffers']>[0],
): Promise<string[]> {
  return (await ledger.claimOffers(claim)).map((offer) => offer.ref.caseId);
}

export function claimSuite(open: OpenLedger): void {
  describe('claims', () => {
    async function withOffers(...ids: string[]) {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      for (const id of ids) {
        await openCase(ledger, id);
        await offered(ledger, clock, { ref: ref(id) });
      }
      for (const holder of ['p1', 'p2']) await ledger.heartbeat(holder, LEASE_MS);
      return { ledger, clock };
    }

    it('give each unfinished offer to one living process, oldest first', async () => {
      const { ledger } = await withOffers('CASE-2', 'CASE-3');
      const first = await ledger.claimOffers(ofTriage('p1', 2));
      expect(first.map((offer) => [offer.ref.caseId, offer.state])).toEqual([
        ['CASE-1', 'offered'],
        ['CASE-2', 'offered'],
      ]);
      expect(first[0]).toEqual(await ledger.getOffer(first[0]?.key ?? expect.fail('no offer')));
      expect(await cases(ledger, ofTriage('p2'))).toEqual(['CASE-3']);
      expect(await cases(ledger, ofTriage('p1'))).toEqual([]);
    });

    it("are of one agent's offers in one tenant, and of one key where one is asked for", async () => {
      const { ledger } = await withOffers('CASE-2');
      const [other] = await ledger.listOffers('acme', { caseId: 'CASE-2' });
      if (other === undefined) throw new Error('no offer');
      expect(await cases(ledger, ofBilling('p1'))).toEqual([]);
      expect(await cases(ledger, { ...ofTriage('p1'), tenant: 'other' })).toEqual([]);
      expect(await cases(ledger, { ...ofBilling('p1'), key: other.key })).toEqual([]);
      expect(await cases(ledger, { ...ofTriage('p1'), tenant: 'other', key: other.key })).toEqual([]);
      expect(await cases(ledger, { ...ofTriage('p1'), key: { ...other.key, attempt: 2 } })).toEqual([]);
      expect(await cases(ledger, { ...ofTriage('p1'), key: other.key })).toEqual(['CASE-2']);
      expect(await cases(ledger, { ...ofTriage('p2'), key: other.key })).toEqual([]);
    });

    it('are of the process that stores an offer in order to send it, from its first moment, if it has a lease', async () => {
      const { ledger, clock } = await withOffers('CASE-2', 'CASE-3', 'CASE-4');
      for (const holder of ['p1', 'p2']) await ledger.claimOffers(ofTriage(holder));
      for (const [caseId, holder] of Object.entries({
        'CASE-5': 'p1',
        'CASE-6': 'gone',
        'CASE-7': undefined,
      })) {
        await openCase(ledger, caseId);
        await offered(ledger, clock, { ref: ref(caseId), ...(holder === undefined ? {} : { holder }) });
      }
      expect(await cases(ledger, ofTriage('p2'))).toEqual(['CASE-6', 'CASE-7']);
      expect(await cases(ledger, ofTriage('p1'))).toEqual([]);
      await ledger.release('p1');
      expect(await cases(ledger, ofTriage('p2'))).toContain('CASE-5');
    });

    it('are not left behind by an offer that was refused', async () => {
      const { ledger, clock } = await withOffers();
      const again = offered(ledger, clock, { attempt: 2, holder: 'p1' });
      await expect(again).rejects.toMatchObject({ code: 'offer_open' });
      expect(await cases(ledger, ofTriage('p2'))).toEqual(['CASE-1']);
    });

    it('pass to another process once the lease has run out, and only then', async () => {
      const { ledger, clock } = await withOffers();
      expect(await cases(ledger, ofTriage('p1'))).toEqual(['CASE-1']);
      clock.advance(LEASE_MS - 1);
      await ledger.heartbeat('p2', LEASE_MS);
      expect(await ledger.isAlive('p1')).toBe(true);
      expect(await cases(ledger, ofTriage('p2'))).toEqual([]);
      clock.advance(1);
      expect(await ledger.isAlive('p1')).toBe(false);
      expect(await cases(ledger, ofTriage('p2'))).toEqual(['CASE-1']);
      // The one that was only paused finds its claim gone.
      await ledger.heartbeat('p1', LEASE_MS);
      expect(await ledger.isAlive('p1')).toBe(true);
      expect(await cases(ledger, ofTriage('p1'))).toEqual([]);
    });

    it('last as long as the process says that it lives', async () => {
      const { ledger, clock } = await withOffers();
      await ledger.claimOffers(ofTriage('p1'));
      for (let beat = 0; beat < 3; beat += 1) {
        clock.advance(LEASE_MS - 1);
        await ledger.heartbeat('p1', LEASE_MS);
        await ledger.heartbeat('p2', LEASE_MS);
      }
      expect(await cases(ledger, ofTriage('p2'))).toEqual([]);
    });

    it('are not for a process without a lease', async () => {
      const { ledger, clock } = await withOffers();
      expect(await ledger.isAlive('p3')).toBe(false);
      expect(await cases(ledger, ofTriage('p3'))).toEqual([]);
      clock.advance(LEASE_MS);
      expect(await cases(ledger, ofTriage('p1'))).toEqual([]);
      await expect(ledger.heartbeat('p1', 0)).rejects.toMatchObject({ code: 'usage' });
    });

    it('are given back one by one, by their holder alone, or with the lease', async () => {
      const { ledger } = await withOffers('CASE-2');
      const [one, two] = await ledger.claimOffers(ofTriage('p1'));
      if (one === undefined || two === undefined) throw new Error('not claimed');
      await ledger.release('p2', { key: one.key });
      expect(await cases(ledger, ofTriage('p2'))).toEqual([]);
      await ledger.release('p1', { key: one.key });
      await ledger.release('p1', { key: one.key });
      expect(await cases(ledger, ofTriage('p2'))).toEqual(['CASE-1']);
      await ledger.release('p1');
      expect(await ledger.isAlive('p1')).toBe(false);
      expect(await ledger.isAlive('p2')).toBe(true);
      expect(await cases(ledger, ofTriage('p2'))).toEqual(['CASE-2']);
    });

    it('end with the offer, once an acceptance has its receipt', async () => {
      const { ledger, clock } = await withOffers('CASE-2');
      const [one, two] = await ledger.claimOffers(ofTriage('p1'));
      if (one === undefined || two === undefined) throw new Error('not claimed');
      await ledger.voidOffer({ key: two.key, writer: TRIAGE, reason: 'x', expired: false, answer: '{}' });
      await ledger.accept(acceptance(clock));
      expect(await cases(ledger, ofTriage('p2'))).toEqual([]);
      await ledger.release('p1', { key: one.key });
      expect(await cases(ledger, ofTriage('p2'))).toEqual(['CASE-1']);
      await ledger.recordReceipt({ key: one.key, receipt: 'jws', receiptKey: '{}' });
      await ledger.release('p2');
      expect(await cases(ledger, ofTriage('p1'))).toEqual([]);
    });

    it('give each open work item of an agent to one living process', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await handedOver(ledger, clock);
      for (const holder of ['p1', 'p2']) await ledger.heartbeat(holder, LEASE_MS);
      expect(await ledger.claimWork(ofTriage('p1'))).toEqual([]);
      expect(await ledger.claimWork({ ...ofBilling('p1'), workId: 'work_none' })).toEqual([]);
      const [item] = await ledger.claimWork(ofBilling('p1'));
      if (item === undefined) throw new Error('not claimed');
      expect(item).toEqual(await ledger.getWork('acme', item.id));
      const mine = { ...ofBilling('p2'), workId: item.id };
      expect(await ledger.claimWork(mine)).toEqual([]);
      await ledger.release('p1', { tenant: 'acme', workId: item.id });
      expect(await ledger.claimWork(mine)).toEqual([item]);
      await ledger.release('p2');
      await ledger.settleWork({ ...asBilling, workId: item.id, state: 'done', result: null });
      expect(await ledger.claimWork(ofBilling('p1'))).toEqual([]);
    });

    it("leave no trace in the case's audit", async () => {
      const { ledger } = await withOffers();
      const before = await ledger.readAudit(asTriage.ref);
      await ledger.claimOffers(ofTriage('p1'));
      await ledger.release('p1');
      expect(await ledger.readAudit(asTriage.ref)).toEqual(before);
    });
  });
}
