import { describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../../src/audit/index.js';
import type { LedgerStore } from '../../../src/ledger/index.js';
import { acceptance, delivery, intend, ledgerWithCase, type OpenLedger, offered, ref } from './fixtures.js';

const revoked = {
  key: delivery().key,
  artifactId: 'art_1',
  version: 1,
  sha256: 'a'.repeat(64),
  reason: 'it is of another customer',
  answer: '{"code":"evidence_revoked"}',
};

async function factsOf(ledger: LedgerStore) {
  return (await ledger.readAudit(ref())).filter(({ type }) => type === 'evidence_revoked');
}

export function revocationSuite(open: OpenLedger): void {
  describe('revoked evidence', () => {
    it('[R-053] rejects the open offer that carries it, and its late acceptance loses', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      expect(await ledger.recordRevocation(revoked)).toMatchObject({
        state: 'rejected',
        code: 'evidence_revoked',
      });
      expect(await ledger.accept(acceptance(clock))).toMatchObject({
        outcome: 'decided',
        decision: { verdict: 'rejected', code: 'evidence_revoked', answer: revoked.answer },
      });
      expect(await factsOf(ledger)).toMatchObject([
        { data: { artifactId: 'art_1', version: 1, reason: revoked.reason, offer: 'offered' } },
      ]);
      const snapshot = await ledger.snapshot(ref());
      verifyChain(snapshot.audit);
      expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
    });

    it('[R-053] is told of an accepted offer, which it does not change; a closed one has nothing told', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await offered(ledger, clock);
      await ledger.accept(acceptance(clock));
      expect(await ledger.recordRevocation(revoked)).toMatchObject({ state: 'accepted' });
      expect(await factsOf(ledger)).toMatchObject([{ data: { offer: 'accepted' } }]);
      const snapshot = await ledger.snapshot(ref());
      verifyChain(snapshot.audit);
      expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);

      const other = await ledgerWithCase(open);
      await offered(other.ledger, other.clock);
      await other.ledger.recordRevocation(revoked);
      await other.ledger.recordRevocation({ ...revoked, artifactId: 'art_2' });
      expect(await factsOf(other.ledger)).toHaveLength(1);
    });

    it('is of an offer that is there, and says why in one line', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await expect(ledger.recordRevocation(revoked)).rejects.toMatchObject({ code: 'offer_unknown' });
      await ledger.intendOffer(intend(clock));
      await expect(ledger.recordRevocation({ ...revoked, reason: 'a\nb' })).rejects.toMatchObject({
        code: 'usage',
      });
    });

    it('is found by what the messages of offers hold', async () => {
      const { ledger, clock } = await ledgerWithCase(open);
      await ledger.intendOffer({ ...intend(clock), message: '{"artifactId":"art_1"}' });
      const holding = async (holds: string) => (await ledger.listOffers('acme', { holds })).length;
      expect(await holding('"artifactId":"art_1"')).toBe(1);
      expect(await holding('"artifactId":"art%1"')).toBe(0);
      expect(await holding('"artifactId":"art_2"')).toBe(0);
    });
  });
}
