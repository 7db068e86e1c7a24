import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ENGINES } from './disks.js';
import { type Organisation, startOrganisations, type World } from './organisations.js';

const HOUR_MS = 3_600_000;
const WAIT = { timeout: 20_000, interval: 20 };

describe.each(ENGINES)(
  'with ledgers on %s, the key of a receiver that changes while an offer to it is not decided as far as its sender knows',
  (engine) => {
    let world: World;
    let triage: Organisation;
    let billing: Organisation;

    beforeEach(async () => {
      world = await startOrganisations(['triage', 'billing'], engine);
      ({ triage, billing } = world);
      await world.open();
      billing.line.lose('replies');
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
      await billing.down();
      await world.rotate(billing);
    });
    afterEach(() => world.close());

    const state = async () =>
      (await triage.node.ledger.listOffers('default', { caseId: 'CASE-7001' }))[0]?.state;
    const becomes = (wanted: string) => vi.waitFor(async () => expect(await state()).toBe(wanted), WAIT);
    const items = () => triage.node.ledger.listAttention('default');

    it('[R-066][R-089] verifies the receipt by the retired key', async () => {
      world.advance(2 * HOUR_MS);
      await becomes('in_doubt');
      billing.line.lose('nothing');
      await billing.up();
      await becomes('accepted');
      expect(await world.owner(triage)).toBe(`${billing.url} at 2`);
      expect(await items()).toEqual([]);
    });

    it('[R-066][R-089] leaves it in doubt where the pinned key is another, and says so until that is mended', async () => {
      await triage.down();
      world.pin(billing, 'x'.repeat(43));
      await triage.up();
      world.advance(2 * HOUR_MS);
      billing.line.lose('nothing');
      await billing.up();
      await becomes('in_doubt');
      // It was started anew, and takes no answer of that key.
      expect(await items()).toMatchObject([
        { what: 'peer_unanswered', data: { peer: billing.url } },
        { what: 'offer_in_doubt', data: { toAgent: billing.url, handoffId: 'CASE-7001:2', attempt: 1 } },
      ]);
      expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
      world.pin(billing);
      await triage.down();
      await triage.up();
      await becomes('accepted');
      expect(await world.owner(triage)).toBe(`${billing.url} at 2`);
      await vi.waitFor(async () => expect(await items()).toEqual([]), WAIT);
    });
  },
);
