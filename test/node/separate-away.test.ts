import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ENGINES } from './disks.js';
import { auditProblems, type Organisation, startOrganisations, type World } from './organisations.js';

const HOUR_MS = 3_600_000;
const refund = { key: 'refund-1', operation: 'refund', amount: { amount: '10.00', currency: 'EUR' } };

describe.each(ENGINES)('an offer between two organisations with ledgers on %s', (engine) => {
  let world: World;
  let triage: Organisation;
  let billing: Organisation;

  beforeEach(async () => {
    world = await startOrganisations(['triage', 'billing'], engine);
    ({ triage, billing } = world);
    await world.open();
  });
  afterEach(() => world.close());

  const state = async () =>
    (await triage.node.ledger.listOffers('default', { caseId: 'CASE-7001' }))[0]?.state;
  const becomes = (wanted: string) =>
    vi.waitFor(async () => expect(await state()).toBe(wanted), { timeout: 15_000, interval: 20 });
  const startRefund = () => triage.node.startEffect({ ref: world.ref(), epoch: 1, ...refund });

  it('[R-089][R-096] is in doubt when its receiver is gone past accept_by, and is settled when that returns', async () => {
    billing.line.lose('requests');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    await billing.down();
    world.advance(2 * HOUR_MS);
    await becomes('in_doubt');
    await expect(startRefund()).rejects.toMatchObject({ code: 'effects_frozen' });
    await triage.node.note({ ref: world.ref(), epoch: 1, text: 'still waiting' });
    await expect(world.handOff(triage, billing)).rejects.toMatchObject({ code: 'peer_unreachable' });
    // For ever: also after a restart.
    await triage.down();
    await triage.up();
    expect(await state()).toBe('in_doubt');
    billing.line.lose('nothing');
    await billing.up();
    await becomes('expired');
    await startRefund();
    await triage.node.settleEffect({ ref: world.ref(), epoch: 1, key: 'refund-1', state: 'done' });
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted' });
    for (const one of [triage, billing]) {
      expect(await world.owner(one)).toBe(`${billing.url} at 2`);
      expect(await auditProblems(one, world.ref())).toEqual([]);
    }
  });
});
