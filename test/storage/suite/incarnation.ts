import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parsePerson } from '../../../src/core/index.js';
import { attemptName, type LedgerStore } from '../../../src/ledger/index.js';
import type { OpenLedger } from './fixtures.js';
import { REF, SEPARATE, transfer, transferOf, type World, worldOf } from './parties.js';
import { inside, personOf } from './takeovers.js';

const CONTRACTS = ['refund-dispute/1'];

/** What a start of an agent makes its ledger wait for, and what its peers then tell it. */
export function incarnationSuite(open: OpenLedger): void {
  describe('an incarnation', () => {
    let world: World;
    let ledger: LedgerStore;
    const run = (n: number) => `${world.triage.url}#run_${n}`;
    const begin = async (n: number, living: readonly number[] = [], peers = [world.billing, world.legal]) => {
      await ledger.heartbeat(run(n), 30_000);
      return ledger.beginIncarnation({
        agent: world.triage.url,
        holder: run(n),
        incarnation: `inc_${n}`,
        peers: peers.map(({ url }) => ({ peer: url, contracts: CONTRACTS })),
        living: living.map(run),
      });
    };
    const answered = (peer: string, n = 1) =>
      ledger.peerAnswered({ agent: world.triage.url, peer, incarnation: `inc_${n}` });
    const states = async () =>
      Object.fromEntries(
        (await ledger.listAwaited(world.triage.url)).map(({ peer, state }) => [peer, state]),
      );

    beforeEach(async () => {
      world = await worldOf(open, 'triage');
      ledger = world.triage.ledger;
    });
    afterEach(async () => {
      expect(await world.problems()).toEqual([]);
    });

    it('[R-166] begins anew at each start, unless a process that surely lives works under the present one', async () => {
      const { triage } = world;
      await expect(
        ledger.beginIncarnation({
          agent: triage.url,
          holder: run(9),
          incarnation: 'x',
          peers: [],
          living: [],
        }),
      ).rejects.toMatchObject({ code: 'usage' });
      expect(await begin(1)).toEqual({ incarnation: 'inc_1', minted: true });
      expect(await begin(1)).toEqual({ incarnation: 'inc_1', minted: false });
      expect(await begin(2, [1])).toEqual({ incarnation: 'inc_1', minted: false });
      // The lease of the first has not run out, but it may have been put back with the ledger.
      expect(await begin(3)).toEqual({ incarnation: 'inc_3', minted: true });
      world.clock.advance(31_000);
      expect(await begin(4, [1, 2, 3])).toEqual({ incarnation: 'inc_4', minted: true });
      expect(await ledger.getIncarnation(triage.url)).toMatchObject({
        incarnation: 'inc_4',
        holders: [run(4)],
      });
      expect(await ledger.getIncarnation(world.billing.url)).toBeNull();
      expect((await ledger.listLeases(triage.url)).map(({ holder }) => holder)).toEqual([run(4)]);
    });

    it('[R-166] lets nothing happen that only one owner may do, until every peer has answered', async () => {
      const { triage, billing, legal } = world;
      await begin(1);
      const refused = { code: 'peers_unanswered', data: { incarnation: 'inc_1' } };
      await expect(triage.start(1, 'r1')).rejects.toMatchObject(refused);
      await expect(triage.offer(billing, 1)).rejects.toMatchObject(refused);
      await expect(ledger.closeCase(triage.at(1))).rejects.toMatchObject(refused);
      // A person's epoch as well may be one that was issued in the time that is lost.
      const take = inside(triage, 'takeover', [triage.url, personOf(triage)], 1);
      await expect(ledger.changeOwner(take)).rejects.toMatchObject(refused);
      await ledger.addNote({ ...triage.at(1), text: 'waiting' });
      expect(await answered(billing.url, 7)).toBeNull();
      expect(await answered(billing.url)).toMatchObject({ state: 'answered' });
      await expect(triage.start(1, 'r1')).rejects.toMatchObject({ data: { peers: legal.url } });
      await answered(legal.url);
      expect(await triage.start(1, 'r1')).toMatchObject({ state: 'started' });
      expect(await begin(2)).toMatchObject({ minted: true });
      expect(await states()).toEqual({ [billing.url]: 'waiting', [legal.url]: 'waiting' });
    });

    it('[R-166] is passed over for a peer that is gone by a person, whose word stands with what is done then', async () => {
      const { triage, billing } = world;
      await begin(1, [], [billing]);
      const by = `person:ann@${triage.url}`;
      expect(parsePerson(by)).not.toBeNull();
      const waiver = { agent: triage.url, peer: billing.url, resolution: { by, reason: 'it was wound up' } };
      expect(await ledger.waivePeer(waiver)).toMatchObject({ state: 'waived', by });
      await expect(ledger.waivePeer(waiver)).rejects.toMatchObject({ code: 'usage' });
      await triage.start(1, 'r1');
      expect((await ledger.readAudit(REF)).at(-1)).toMatchObject({
        type: 'effect_started',
        data: { waived: [{ peer: billing.url, by, reason: 'it was wound up' }] },
      });
      await begin(2, [], [billing]);
      await expect(triage.start(1, 'r2')).rejects.toMatchObject({ code: 'peers_unanswered' });
    });

    it('shows a peer that does not answer for a while to whoever looks after the agent', async () => {
      await begin(1, [], [world.billing]);
      expect(await ledger.listAttention('acme')).toEqual([]);
      const since = world.clock.in(0);
      world.clock.advance(24 * 3_600_000);
      expect((await ledger.listAttention('acme')).filter(({ what }) => what === 'peer_unanswered')).toEqual([
        {
          what: 'peer_unanswered',
          ref: null,
          since,
          data: { agent: world.triage.url, peer: world.billing.url, incarnation: 'inc_1' },
        },
      ]);
      await answered(world.billing.url);
      expect(await ledger.listAttention('acme')).toEqual([]);
    });

    it('[R-166] takes over what proves that the case has left, with or without its offer', async () => {
      const { triage, billing, legal } = world;
      const settle = (proof: ReturnType<typeof transferOf>) =>
        ledger.settleReceipt({ agent: triage.url, by: billing.url, transfer: proof });
      const { offer } = await triage.offer(billing, 1);
      expect(await settle(transferOf(offer))).toBe('released');
      expect(await settle(transferOf(offer))).toBe('known');
      expect(await triage.stands()).toEqual([billing.url, 2]);
      const back = await billing.accepted({ offer, effects: [], provenance: [] });
      expect(back).toEqual(transferOf(offer));
      await triage.accepted(await billing.offer(triage, 2));
      // Made in the time that was lost: there is no such offer here.
      const lost = transfer(triage.url, legal.url, 3);
      expect(await settle(lost)).toBe('learned');
      expect(await triage.stands()).toEqual([legal.url, 4]);
      expect((await ledger.listWork('acme', {})).map(({ state }) => state)).toEqual(['superseded']);
      expect(await settle(lost)).toBe('known');
      expect(await ledger.listQuarantined('acme')).toEqual([]);
    });

    it('[R-166] quarantines a case of which it does not know what its agent has signed, or which it contradicts', async () => {
      const { triage, billing, legal } = world;
      const settle = (proof: ReturnType<typeof transferOf>) =>
        ledger.settleReceipt({ agent: triage.url, by: billing.url, transfer: proof });
      await expect(settle(transfer(billing.url, legal.url, 1))).rejects.toMatchObject({ code: 'usage' });
      expect(await settle(transfer(billing.url, triage.url, 2))).toBe('quarantined');
      expect(await settle(transfer(billing.url, triage.url, 2))).toBe('quarantined');
      expect(await ledger.listQuarantined('acme')).toMatchObject([
        {
          reason: 'receipt_contradicted',
          witnessed: { toAgent: triage.url, from: billing.url, epoch: 3, receipt: expect.any(String) },
          found: { owner: triage.url, epoch: 1 },
        },
      ]);
      // A case whose id is free here was another's all the time.
      const gone = { ...REF, caseId: 'CASE-9' };
      const { key, ...rest } = transfer(triage.url, billing.url, 1);
      const proof = { ...rest, ref: gone, key: { ...key, handoffId: 'CASE-9:2' } };
      expect(await settle(proof)).toBe('quarantined');
      const anew = { ref: gone, kind: 'dispute', owner: triage.url, epoch: 1, actor: triage.url };
      await expect(ledger.openCase(anew)).rejects.toMatchObject({ code: 'case_quarantined' });
    });

    it('[R-062] follows no receipt to where the case cannot go', async () => {
      const { triage, billing } = world;
      const claims = (caseId: string, contracts = CONTRACTS) => {
        const { key, ...rest } = transfer(triage.url, billing.url, 1);
        const claim = { ...rest, ref: { ...REF, caseId }, key: { ...key, handoffId: `${caseId}:2` } };
        return ledger.settleReceipt({ agent: triage.url, by: billing.url, transfer: claim, contracts });
      };
      const owned = { owner: triage.url, epoch: 1, status: 'open' };
      const open = async (caseId: string, kind: string) => {
        await ledger.openCase({
          ref: { ...REF, caseId },
          kind,
          owner: triage.url,
          epoch: 1,
          actor: triage.url,
        });
        return { ...REF, caseId };
      };
      await ledger.putKind('acme', { ...SEPARATE, kind: 'local', mode: 'shared' });
      const local = await open('LOCAL', 'local');
      expect(await claims('LOCAL')).toBe('foreign');
      expect(await ledger.getCase(local)).toMatchObject(owned);
      expect(await ledger.listQuarantined('acme')).toEqual([]);
      const secret = await open('SECRET', 'dispute');
      expect(await claims('SECRET', ['other/1'])).toBe('quarantined');
      expect(await ledger.getCase(secret)).toMatchObject(owned);
      const closed = await open('CLOSED', 'dispute');
      await ledger.closeCase({ ref: closed, writer: triage.url, epoch: 1 });
      expect(await claims('CLOSED')).toBe('quarantined');
      expect(await ledger.getCase(closed)).toMatchObject({ ...owned, status: 'closed' });
    });

    it('[R-166] gives out, page by page, the receipts of an agent and no others', async () => {
      const { triage, billing, legal } = world;
      for (const caseId of ['A', 'B', 'C']) {
        const ref = { ...REF, caseId };
        await ledger.openCase({ ref, kind: 'dispute', owner: triage.url, epoch: 1, actor: triage.url });
        const { key, ...rest } = transfer(triage.url, billing.url, 1);
        const proof = { ...rest, ref, key: { ...key, handoffId: `${caseId}:2` }, receipt: `of ${caseId}` };
        await ledger.settleReceipt({ agent: triage.url, by: billing.url, transfer: proof });
      }
      const page = (agent: string, after: string | null, tenants = ['acme']) =>
        ledger.listReceipts(agent, { tenants, after, limit: 2 });
      const first = await page(billing.url, null);
      expect(first.receipts).toEqual(['of A', 'of B']);
      expect(await page(billing.url, first.next)).toEqual({ receipts: ['of C'], next: null });
      expect(await page(legal.url, null)).toEqual({ receipts: [], next: null });
      expect(await page(billing.url, null, ['other'])).toEqual({ receipts: [], next: null });
      await expect(page(billing.url, 'nonsense')).rejects.toMatchObject({ code: 'control_invalid' });
    });
  });

  describe('the incarnation of a peer', () => {
    it('[R-166] takes no offer of an earlier one, but what the peer says that it still holds', async () => {
      const { triage, billing, problems } = await worldOf(open, 'billing');
      const { ledger } = billing;
      const hear = (incarnation: string, since: string, names: readonly string[] = []) =>
        ledger.hearIncarnation({
          ...{ tenant: 'acme', agent: billing.url, peer: triage.url },
          ...{ incarnation, since, open: names },
        });
      const crossing = await triage.offer(billing, 1);
      await hear('inc_2', '2026-03-02T00:00:00.000Z');
      await expect(billing.accept(crossing)).rejects.toMatchObject({ code: 'incarnation_superseded' });
      await expect(billing.reject(crossing, 'fact_missing', 'inc_1')).rejects.toMatchObject({
        code: 'incarnation_superseded',
      });
      await expect(hear('inc_1', '2026-03-01T00:00:00.000Z')).rejects.toMatchObject({
        code: 'incarnation_superseded',
      });
      expect(await ledger.findDecision(crossing.offer.key)).toBeNull();
      await hear('inc_2', '2026-03-02T00:00:00.000Z', [attemptName(crossing.offer.key)]);
      await billing.accepted(crossing);
      expect(await billing.stands()).toEqual([billing.url, 2]);
      expect(await problems()).toEqual([]);
    });

    it('[R-166] waits with an acceptance for its sender alone, with a rejection and a tombstone for all', async () => {
      const { triage, billing, legal } = await worldOf(open, 'billing');
      const { ledger, url: agent } = billing;
      const crossing = await triage.offer(billing, 1);
      await ledger.heartbeat(`${agent}#run_1`, 30_000);
      const peers = [triage, legal].map(({ url }) => ({ peer: url, contracts: CONTRACTS }));
      await ledger.beginIncarnation({
        ...{ agent, holder: `${agent}#run_1`, incarnation: 'b_1' },
        ...{ peers, living: [] },
      });
      await expect(billing.accept(crossing)).rejects.toMatchObject({ code: 'peers_unanswered' });
      for (const made of ['inc_1', null]) {
        await expect(billing.reject(crossing, 'fact_missing', made)).rejects.toMatchObject({
          code: 'peers_unanswered',
        });
      }
      expect(await ledger.findDecision(crossing.offer.key)).toBeNull();
      await expect(billing.withdraw(crossing)).rejects.toMatchObject({ code: 'peers_unanswered' });
      await ledger.peerAnswered({ agent, peer: triage.url, incarnation: 'b_1' });
      // Legal may hold the case from this agent, as its ledger no longer knows: the sender would act beside it.
      for (const denied of [billing.reject(crossing, 'fact_missing', 'inc_1'), billing.withdraw(crossing)]) {
        await expect(denied).rejects.toMatchObject({ code: 'peers_unanswered', data: { peers: legal.url } });
      }
      expect(await ledger.findDecision(crossing.offer.key)).toBeNull();
      await billing.accepted(crossing);
      await expect(billing.start(2, 'r1')).rejects.toMatchObject({ code: 'peers_unanswered' });
    });
  });
}
