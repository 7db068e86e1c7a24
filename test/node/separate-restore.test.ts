import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Holdfast } from '../../src/index.js';
import { run } from '../cli/support.js';
import { ENGINES } from './disks.js';
import {
  answered,
  auditProblems,
  type Organisation,
  startOrganisations,
  type World,
} from './organisations.js';

const WAIT = { timeout: 15_000, interval: 20 };
const refund = { key: 'refund-1', operation: 'refund', amount: { amount: '10.00', currency: 'EUR' } };

describe.each(ENGINES)(
  'an organisation with its ledger on %s whose disks were all put back to an earlier state',
  (engine) => {
    let world: World;
    let triage: Organisation;
    let billing: Organisation;

    beforeEach(async () => {
      world = await startOrganisations(['triage', 'billing'], engine);
      ({ triage, billing } = world);
    });
    afterEach(() => world.close());

    const ref = (caseId?: string) => ({ tenant: 'default', root: triage.url, caseId: caseId ?? 'CASE-7001' });
    const start = (node: Holdfast, epoch: number, caseId?: string) =>
      node.startEffect({ ref: ref(caseId), epoch, ...refund });
    const attention = ({ node }: Organisation) => node.ledger.listAttention('default');

    async function keep(one: Organisation): Promise<void> {
      await one.down();
      await one.disks.keep();
      await one.up();
      await answered(one.node);
    }

    async function putBack(one: Organisation): Promise<void> {
      await one.down();
      await one.disks.putBack();
      await one.up();
    }

    it('[R-166] does nothing on a case that it has handed over since, and learns that it has', async () => {
      await world.open();
      await keep(triage);
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 2 });
      await start(billing.node, 2);
      billing.line.lose('requests');
      await putBack(triage);
      // The case looks as if it had never been offered.
      expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
      const waits = { code: 'peers_unanswered', data: { peers: billing.url } };
      await expect(start(triage.node, 1)).rejects.toMatchObject(waits);
      await expect(world.handOff(triage, billing)).rejects.toMatchObject(waits);
      await triage.node.note({ ref: ref(), epoch: 1, text: 'is it ours?' });
      billing.line.lose('nothing');
      await answered(triage.node);
      expect(await world.owner(triage)).toBe(`${billing.url} at 2`);
      await expect(start(triage.node, 1)).rejects.toMatchObject({ code: 'epoch_stale' });
      expect(await attention(triage)).toEqual([]);
      for (const one of [triage, billing]) expect(await auditProblems(one, ref())).toEqual([]);
      await billing.node.settleEffect({ ref: ref(), epoch: 2, key: refund.key, state: 'done' });
      expect(await world.handOff(billing, triage)).toMatchObject({ state: 'accepted', epoch: 3 });
      await expect(start(triage.node, 3)).rejects.toMatchObject({ code: 'effect_duplicate' });
    });

    it('[R-166] keeps an offer open that it had made by then, until its receiver says what it has signed', async () => {
      await world.open();
      billing.line.lose('replies');
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
      await triage.down();
      await triage.disks.keep();
      await triage.up();
      billing.line.lose('nothing');
      const released = () =>
        vi.waitFor(async () => expect(await world.owner(triage)).toBe(`${billing.url} at 2`), WAIT);
      await released();
      billing.line.lose('requests');
      await putBack(triage);
      expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
      await expect(start(triage.node, 1)).rejects.toMatchObject({ code: 'effects_frozen' });
      await expect(world.handOff(triage, billing)).rejects.toMatchObject({ code: 'offer_open' });
      world.advance(61_000);
      const unanswered = { what: 'peer_unanswered', data: { agent: triage.url, peer: billing.url } };
      expect(await attention(triage)).toMatchObject([unanswered]);
      const answers = await run('peer', 'answers', '--dir', triage.disks.dir, '--json');
      expect(answers.json.peers).toMatchObject([{ peer: billing.url, state: 'waiting' }]);
      billing.line.lose('nothing');
      await answered(triage.node);
      await released();
      expect(await attention(triage)).toEqual([]);
      expect(await triage.node.ledger.listOffers('default', {})).toMatchObject([{ state: 'accepted' }]);
      expect(await auditProblems(triage, ref())).toEqual([]);
    });

    it('[R-166] quarantines a case that it has accepted since, and says what was signed', async () => {
      await world.open();
      await keep(billing);
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 2 });
      await start(billing.node, 2);
      await putBack(billing);
      const item = { what: 'case_quarantined', ref: ref(), data: { reason: 'receipt_contradicted' } };
      await vi.waitFor(async () => expect(await attention(billing)).toMatchObject([item]), WAIT);
      const [found] = await attention(billing);
      expect(found?.data).toMatchObject({
        witnessed: { from: triage.url, toAgent: billing.url, epoch: 2 },
        found: {},
      });
      await expect(start(billing.node, 2)).rejects.toMatchObject({ code: 'case_quarantined' });
      expect(await world.owner(triage)).toBe(`${billing.url} at 2`);
      await expect(start(triage.node, 1)).rejects.toMatchObject({ code: 'epoch_stale' });

      const said = { person: 'ann', reason: 'restored from the disk of last night', kind: 'refund' };
      await expect(billing.node.recoverCase({ ref: ref(), ...said })).rejects.toMatchObject({
        code: 'usage',
      });
      expect(await billing.node.recoverCase({ ref: ref(), ...said, owner: billing.url })).toMatchObject({
        owner: billing.url,
        epoch: 2,
      });
      await billing.down();
      await billing.up();
      await answered(billing.node);
      expect(await attention(billing)).toEqual([]);
      expect(await world.handOff(billing, triage)).toMatchObject({ state: 'accepted', epoch: 3 });
      for (const one of [triage, billing]) {
        expect(await world.owner(one)).toBe(`${triage.url} at 3`);
        expect(await auditProblems(one, ref())).toEqual([]);
      }
    });

    it('[R-166] goes on without a peer that is gone for good, on the word of a person', async () => {
      await world.open();
      await triage.down();
      await billing.down();
      await triage.up();
      await expect(start(triage.node, 1)).rejects.toMatchObject({ code: 'peers_unanswered' });
      const waiver = { peer: billing.url, person: 'ann', reason: 'it was wound up' };
      expect(await triage.node.waivePeer(waiver)).toMatchObject({ state: 'waived' });
      await start(triage.node, 1);
      expect((await triage.node.ledger.readAudit(ref())).at(-1)?.data?.waived).toMatchObject([
        { peer: billing.url, by: `person:ann@${triage.url}` },
      ]);
    });

    it('[R-166] decides on no offer again that it had accepted, though the answer never arrived', async () => {
      await world.open();
      await keep(billing);
      billing.line.lose('replies');
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
      expect(await world.owner(billing)).toBe(`${billing.url} at 2`);
      await triage.down();
      await triage.disks.keep();
      billing.line.lose('nothing');
      await putBack(billing);
      // Its sender is down: what that holds is not known, and nothing is decided until it is.
      await expect(start(billing.node, 2)).rejects.toMatchObject({ code: 'case_unknown' });
      expect(await billing.node.ledger.listAwaited(billing.url)).toMatchObject([{ state: 'waiting' }]);
      await triage.up();
      await vi.waitFor(async () => expect(await world.owner(triage)).toBe(`${billing.url} at 2`), WAIT);
      // The receipt was lost with the disk, and nobody else had it: it is the first one for everybody.
      expect(await world.owner(billing)).toBe(`${billing.url} at 2`);
      expect((await billing.node.ledger.listWork('default', {})).length).toBe(1);
    });

    it('[R-166] opens no case under an id that was taken in the time it has lost', async () => {
      await keep(triage);
      await world.open('CASE-9');
      expect(await world.handOff(triage, billing, 'CASE-9')).toMatchObject({ state: 'accepted' });
      await putBack(triage);
      await answered(triage.node);
      expect(await world.owner(triage, 'CASE-9')).toBeNull();
      await expect(world.open('CASE-9')).rejects.toMatchObject({ code: 'case_quarantined' });
      expect(await attention(triage)).toMatchObject([
        { ref: ref('CASE-9'), data: { witnessed: { toAgent: billing.url, epoch: 2 } } },
      ]);
    });
  },
);
