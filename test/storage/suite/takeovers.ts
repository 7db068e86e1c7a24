import { afterEach, describe, expect, it } from 'vitest';
import type { ChangeOwnerCommand, OwnerChange, Resolution, Transfer } from '../../../src/ledger/index.js';
import type { OpenLedger } from './fixtures.js';
import { type Party, type PartyName, REF, transferOf, WITHDRAWN, type World, worldOf } from './parties.js';

/** `person:ann@` the agent. */
export const personOf = (party: Party, id = 'ann') => `person:${id}@${party.url}`;

/** A change of owner inside one node, with the proof that it signs. */
export function inside(
  party: Party,
  change: OwnerChange,
  [from, to]: readonly [string, string],
  epoch: number,
  over: Partial<ChangeOwnerCommand> = {},
): ChangeOwnerCommand {
  const actor = change === 'takeover' ? to : change === 'escalation' ? party.url : from;
  const digest = `${change} ${from} ${to} ${epoch}`;
  const receipt = `receipt of ${digest}`;
  const proof = { from, digest, receipt, receiptKey: '{"kty":"OKP"}' };
  return { ref: REF, change, epoch, actor, to, reason: 'nobody answers', voids: null, proof, ...over };
}

const said = (party: Party): Resolution => ({
  by: personOf(party),
  reason: 'billing never had it',
  minutes: 5,
  records: [{ name: 'calls', id: 'c-1' }],
});

/** Persons, where each organisation has a ledger of its own. */
export function takeoverSuite(open: OpenLedger): void {
  describe('a person, with a ledger for each organisation', () => {
    let world: World;
    const seated = async (seat: PartyName): Promise<World> => {
      world = await worldOf(open, seat);
      return world;
    };
    afterEach(async () => {
      expect(await world.problems()).toEqual([]);
    });

    /** Triage's person has it, passes it to another, and that one gives it back. */
    async function around({ triage }: World, first = 1): Promise<void> {
      const [ann, bob] = [personOf(triage), personOf(triage, 'bob')];
      await triage.ledger.changeOwner(inside(triage, 'takeover', [triage.url, ann], first));
      await triage.ledger.changeOwner(inside(triage, 'reassignment', [ann, bob], first + 1));
      await triage.ledger.changeOwner(inside(triage, 'return', [bob, triage.url], first + 2));
    }

    it('[R-062] has the case at epoch + 1, and each change is kept with its proof', async () => {
      const { triage } = await seated('triage');
      await around(world);
      expect(await triage.stands()).toEqual([triage.url, 4]);
      const transfers = await triage.ledger.listTransfers(REF);
      expect(transfers.map(({ key, toAgent, newEpoch }) => [key.sender, toAgent, newEpoch])).toEqual([
        [triage.url, personOf(triage), 2],
        [personOf(triage), personOf(triage, 'bob'), 3],
        [personOf(triage, 'bob'), triage.url, 4],
      ]);
      await expect(triage.start(1, 'r1')).rejects.toMatchObject({ code: 'epoch_stale' });
      expect(await triage.start(4, 'r1')).toMatchObject({ state: 'started' });
      expect(await triage.ledger.getCase(REF)).toMatchObject({ hops: [], tasksLeft: 5 });
    });

    it('[R-062] takes nothing from an open offer, nor without the proof of the node', async () => {
      const { triage, billing } = await seated('triage');
      const { ledger, url } = triage;
      const take = inside(triage, 'takeover', [url, personOf(triage)], 1);
      const { proof: _, ...unproved } = take;
      await expect(ledger.changeOwner(unproved)).rejects.toMatchObject({ code: 'usage' });
      const theirs = inside(billing, 'takeover', [url, personOf(billing)], 1);
      await expect(ledger.changeOwner(theirs)).rejects.toMatchObject({ code: 'not_owner' });
      const crossing = await triage.offer(billing, 1);
      for (const force of [{}, { force: true }]) {
        await expect(ledger.changeOwner({ ...take, ...force })).rejects.toMatchObject({
          code: 'withdraw_needed',
        });
      }
      await billing.withdraw(crossing);
      await triage.close(crossing);
      await expect(ledger.changeOwner({ ...take, force: true })).rejects.toMatchObject({ code: 'usage' });
      expect(await ledger.changeOwner(take)).toMatchObject({ owner: personOf(triage), epoch: 2 });
    });

    it.each(['triage', 'billing'] as const)(
      '[R-062] is one party with its agent to every other ledger, with this one at %s',
      async (seat) => {
        const { triage, billing } = await seated(seat);
        await triage.ledger.releaseOffer(await billing.accepted(await triage.offer(billing, 1)));
        await billing.ledger.releaseOffer(await triage.accepted(await billing.offer(triage, 2)));
        await around(world, 3);
        const crossing = await triage.offer(billing, 6);
        const last = crossing.provenance.at(-1) as Transfer;
        const over = { hops: [triage.url, billing.url, triage.url] };
        // The last proof leads over the epochs that it leaves out; none is invented.
        for (const provenance of [[], [{ ...last, key: { ...last.key, sender: billing.url } }]]) {
          expect(await billing.accept(crossing, { ...over, provenance })).toMatchObject({
            outcome: 'refused',
            code: 'epoch_ahead',
          });
        }
        await triage.ledger.releaseOffer(await billing.accepted(crossing, { ...over, provenance: [last] }));
        expect(await billing.stands()).toEqual([billing.url, 7]);
        expect((await billing.ledger.listTransfers(REF)).map(({ newEpoch }) => newEpoch)).toEqual([
          2, 3, 6, 7,
        ]);
        expect(await billing.ledger.getCase(REF)).toMatchObject({ hops: over.hops });
        expect(await triage.ledger.getCase(REF)).toMatchObject({ owner: billing.url, hops: over.hops });
      },
    );

    it('[R-062] comes back with what happened among the others’ persons', async () => {
      const { triage, billing } = await seated('triage');
      await billing.accepted(await triage.offer(billing, 1));
      const carol = personOf(billing, 'carol');
      await billing.ledger.changeOwner(inside(billing, 'escalation', [billing.url, carol], 2));
      await billing.ledger.changeOwner(inside(billing, 'return', [carol, billing.url], 3));
      const back = await billing.offer(triage, 4);
      await billing.ledger.releaseOffer(await triage.accepted(back));
      expect(await triage.stands()).toEqual([triage.url, 5]);
      expect(await triage.ledger.listTransfers(REF)).toHaveLength(4);
    });

    it.each(['triage', 'billing'] as const)(
      '[R-062] hands a case over through the agent, by an approval, with this one at %s',
      async (seat) => {
        const { triage, billing } = await seated(seat);
        const ann = personOf(triage);
        await triage.ledger.changeOwner(inside(triage, 'takeover', [triage.url, ann], 1));
        await expect(triage.offer(billing, 2)).rejects.toMatchObject({ code: 'not_owner' });
        const approval = { person: ann, digest: 'a'.repeat(64) };
        const crossing = await triage.offer(billing, 2, { approval });
        expect(crossing.offer.key.sender).toBe(triage.url);
        const { approval: _, ...bare } = crossing;
        const wrong = { ...crossing, approval: { ...approval, person: personOf(triage, 'bob') } };
        for (const other of [bare, wrong]) {
          expect(await billing.accept(other)).toMatchObject({ outcome: 'refused', code: 'not_owner' });
        }
        await triage.ledger.releaseOffer(await billing.accepted(crossing));
        for (const { ledger } of [triage, billing]) {
          expect(await ledger.getCase(REF)).toMatchObject({
            owner: billing.url,
            epoch: 3,
            hops: [triage.url],
          });
          const told = (await ledger.readAudit(REF)).filter(({ data }) => data?.approval !== undefined);
          expect(told.map(({ data }) => data?.approval)).toEqual([approval]);
        }
      },
    );

    describe('by force, while the receiver does not answer', () => {
      const forced = async (seat: PartyName) => {
        const all = await seated(seat);
        const { triage, billing } = all;
        const crossing = await triage.offer(billing, 1);
        await triage.ledger.markInDoubt(crossing.offer.key);
        const take = inside(triage, 'takeover', [triage.url, personOf(triage)], 1, { force: true });
        return { ...all, crossing, row: () => triage.ledger.changeOwner(take) };
      };

      it('[R-137] goes on at epoch + 2, marked as a risk, and nothing starts or is offered until that is settled', async () => {
        const { triage, legal, crossing, row } = await forced('triage');
        const { ledger } = triage;
        expect(await ledger.listAttention('acme')).toMatchObject([
          { what: 'offer_in_doubt', ref: REF, data: { toAgent: crossing.offer.toAgent, attempt: 1 } },
        ]);
        world.clock.advance(1000);
        expect(await row()).toMatchObject({ owner: personOf(triage), epoch: 3 });
        expect(await ledger.listAttention('acme')).toMatchObject([
          {
            what: 'risk_double_owner',
            since: world.clock.in(0),
            data: { handoffId: crossing.offer.key.handoffId },
          },
        ]);
        expect((await ledger.readAudit(REF)).at(-1)).toMatchObject({
          type: 'owner_changed',
          rule: 'risk_double_owner',
          epochBefore: 1,
          epochAfter: 3,
          data: { doubt: { toAgent: crossing.offer.toAgent, handoffId: crossing.offer.key.handoffId } },
        });
        // It is passed on among them meanwhile.
        await ledger.changeOwner(inside(triage, 'return', [personOf(triage), triage.url], 3));
        await expect(triage.start(4, 'r1')).rejects.toMatchObject({ code: 'effects_frozen' });
        await expect(triage.offer(legal, 4)).rejects.toMatchObject({ code: 'offer_open' });
        const settle = { key: crossing.offer.key, resolution: said(triage), answer: WITHDRAWN };
        const foreign = { ...said(triage), by: personOf(legal) };
        await expect(ledger.settleDoubt({ ...settle, resolution: foreign })).rejects.toMatchObject({
          code: 'not_owner',
        });
        expect(await ledger.settleDoubt(settle)).toMatchObject({ state: 'withdrawn' });
        expect((await ledger.readAudit(REF)).at(-1)).toMatchObject({
          type: 'offer_closed',
          rule: 'risk_double_owner',
          data: { ...said(triage), state: 'withdrawn' },
        });
        expect(await ledger.listAttention('acme')).toEqual([]);
        expect(await triage.start(4, 'r1')).toMatchObject({ state: 'started' });
        await triage.settle(4, 'r1', 'done');
        await legal.accepted(await triage.offer(legal, 4), { provenance: [], hops: [triage.url] });
        expect(await legal.stands()).toEqual([legal.url, 5]);
      });

      it('[R-137] is over where the receiver answers that it never had the case', async () => {
        const { triage, billing, crossing, row } = await forced('triage');
        await row();
        await billing.withdraw(crossing);
        expect(await triage.close(crossing)).toMatchObject({ state: 'withdrawn' });
        expect(await triage.ledger.listAttention('acme')).toEqual([]);
      });

      it('[R-137] settles only what it has left in doubt', async () => {
        const { triage, crossing } = await forced('triage');
        const settle = { key: crossing.offer.key, resolution: said(triage), answer: WITHDRAWN };
        await expect(triage.ledger.settleDoubt(settle)).rejects.toMatchObject({ code: 'usage' });
      });

      it.each(['in doubt', 'settled by a person'] as const)(
        '[R-137] closes the case to every write when the receipt turns up, the offer %s',
        async (how) => {
          const { triage, billing, crossing, row } = await forced('triage');
          const proof = await billing.accepted(crossing);
          await row();
          if (how !== 'in doubt') {
            const settle = { key: crossing.offer.key, resolution: said(triage), answer: WITHDRAWN };
            await triage.ledger.settleDoubt(settle);
          }
          await expect(triage.ledger.releaseOffer(proof)).rejects.toMatchObject({ code: 'case_quarantined' });
          const items = await triage.ledger.listAttention('acme');
          expect(items).toMatchObject([
            { what: 'case_quarantined', data: { reason: 'receipt_contradicted', found: { epoch: 3 } } },
          ]);
          const note = { ref: REF, writer: personOf(triage), epoch: 3, text: 'x' };
          await expect(triage.ledger.addNote(note)).rejects.toMatchObject({ code: 'case_quarantined' });
        },
      );

      it('[R-137] closes it at the receiver, too, which learns of the takeover', async () => {
        const { triage, billing, crossing, row } = await forced('billing');
        await billing.accepted(crossing);
        await row();
        const [takeover] = await triage.ledger.listTransfers(REF);
        const told = (over: Partial<Transfer>) =>
          billing.withdraw(crossing, { ...(takeover as Transfer), ...over });
        // What is older than the acceptance, or of somebody else, says nothing against it.
        await told({ oldEpoch: 1, newEpoch: 2 });
        await told({ toAgent: 'https://legal.example' });
        expect(await billing.ledger.listQuarantined('acme')).toEqual([]);
        expect(await told({})).toMatchObject({ outcome: 'decided', decision: { verdict: 'accepted' } });
        expect(await billing.ledger.listQuarantined('acme')).toMatchObject([
          {
            reason: 'receipt_contradicted',
            witnessed: { toAgent: personOf(triage), epoch: 3 },
            found: { owner: billing.url, epoch: 2 },
          },
        ]);
        await expect(billing.start(2, 'r1')).rejects.toMatchObject({ code: 'case_quarantined' });
      });

      it('[R-137] is no contradiction where the case had come back in between', async () => {
        const { triage, billing } = await seated('billing');
        const first = await triage.offer(billing, 1);
        await billing.accepted(first);
        await billing.ledger.releaseOffer(await triage.accepted(await billing.offer(triage, 2)));
        await triage.ledger.changeOwner(inside(triage, 'takeover', [triage.url, personOf(triage)], 3));
        const takeover = (await triage.ledger.listTransfers(REF)).at(-1) as Transfer;
        await billing.withdraw(first, takeover);
        expect(await billing.ledger.listQuarantined('acme')).toEqual([]);
        expect(transferOf(first.offer).newEpoch).toBe(2);
      });
    });
  });
}
