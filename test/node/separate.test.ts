import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { pause } from '../../src/core/index.js';
import { accept, type Holdfast, reject } from '../../src/index.js';
import { auditProblems, type Organisation, startOrganisations, type World } from './organisations.js';

const HOUR_MS = 3_600_000;
const refund = (key: string) => ({
  key,
  operation: 'refund',
  amount: { amount: '10.00', currency: 'EUR' },
});

describe('two organisations with a ledger each', () => {
  let world: World;
  let triage: Organisation;
  let billing: Organisation;

  beforeEach(async () => {
    world = await startOrganisations(['triage', 'billing']);
    ({ triage, billing } = world);
    await world.open();
  });
  afterEach(() => world.close());

  const offers = (of: Organisation) => of.node.ledger.listOffers('default', { caseId: 'CASE-7001' });
  const lastOffer = async (of: Organisation) => (await offers(of))[0];
  const work = (of: Organisation) => of.node.ledger.listWork('default', { caseId: 'CASE-7001' });
  const state = async (of: Organisation) => (await lastOffer(of))?.state;
  const becomes = (of: Organisation, wanted: string) =>
    vi.waitFor(async () => expect(await state(of)).toBe(wanted), { timeout: 15_000, interval: 20 });
  const startRefund = (node: Holdfast, key: string, epoch: number) =>
    node.startEffect({ ref: world.ref(), epoch, ...refund(key) });

  /** Both ledgers name the same owner, and each is told by its own audit. */
  async function agree(owner: Organisation, epoch: number): Promise<void> {
    for (const one of [triage, billing]) {
      expect(await world.owner(one), one.name).toBe(`${owner.url} at ${epoch}`);
      expect(await auditProblems(one, world.ref()), one.name).toEqual([]);
    }
  }

  it('[R-061][R-066] moves a case by the signed receipt, and its effects with it', async () => {
    await startRefund(triage.node, 'refund-1', 1);
    await triage.node.settleEffect({ ref: world.ref(), epoch: 1, key: 'refund-1', state: 'done' });
    const result = await world.handOff(triage, billing);
    expect(result).toMatchObject({ state: 'accepted', owner: billing.url, epoch: 2 });
    await agree(billing, 2);
    const [item] = await work(billing);
    expect(result).toMatchObject({ workItem: item?.id });
    expect(await work(triage)).toEqual([]);
    expect(await lastOffer(triage)).toMatchObject({ state: 'accepted', receipt: expect.any(String) });
    expect(await billing.node.ledger.listEffects(world.ref())).toMatchObject([
      { key: 'refund-1', state: 'done', owner: triage.url },
    ]);
    await expect(startRefund(billing.node, 'refund-1', 2)).rejects.toMatchObject({
      code: 'effect_duplicate',
    });
    await expect(startRefund(triage.node, 'refund-2', 1)).rejects.toMatchObject({ code: 'epoch_stale' });
    await expect(startRefund(billing.node, 'refund-2', 2)).resolves.toMatchObject({ state: 'started' });
  });

  it('[R-088][R-083][R-180] finds out about an acceptance whose answer was lost, and releases', async () => {
    billing.line.lose('replies');
    const lost = await world.handOff(triage, billing);
    expect(lost).toMatchObject({ state: 'open', problem: 'outcome_unknown' });
    expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    expect(await world.owner(billing)).toBe(`${billing.url} at 2`);
    billing.line.lose('nothing');
    await becomes(triage, 'accepted');
    await agree(billing, 2);
    expect(await work(billing)).toHaveLength(1);
  });

  it('[R-065] goes on after its sender was restarted', async () => {
    billing.line.lose('requests');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    const bytes = (await lastOffer(triage))?.message;
    await triage.down();
    billing.line.lose('nothing');
    await triage.up();
    await becomes(triage, 'accepted');
    expect((await lastOffer(triage))?.message).toBe(bytes);
    await agree(billing, 2);
  });

  it('[R-083][R-085] goes on after its receiver was restarted, which answers what it has stored', async () => {
    billing.line.lose('replies');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    await billing.down();
    billing.line.lose('nothing');
    await billing.up();
    await becomes(triage, 'accepted');
    await agree(billing, 2);
    expect(await work(billing)).toHaveLength(1);
  });

  it('[R-064] keeps the case after a rejection, and may be corrected in the next attempt', async () => {
    billing.check = () => reject('records_disagree', 'No such payment.');
    expect(await world.handOff(triage, billing)).toMatchObject({
      state: 'rejected',
      code: 'records_disagree',
    });
    expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    expect(await world.owner(billing)).toBeNull();
    await expect(startRefund(triage.node, 'refund-1', 1)).resolves.toMatchObject({ state: 'started' });
    await triage.node.settleEffect({ ref: world.ref(), epoch: 1, key: 'refund-1', state: 'done' });
    billing.check = () => accept();
    expect(await world.handOff(triage, billing)).toMatchObject({
      state: 'accepted',
      offer: { key: { attempt: 2 } },
    });
    await agree(billing, 2);
  });

  it('[R-083] learns of a rejection whose answer was lost', async () => {
    billing.check = () => reject('records_disagree', 'No such payment.');
    billing.line.lose('replies');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    billing.line.lose('nothing');
    await becomes(triage, 'rejected');
    const { key } = (await lastOffer(triage)) as { key: Parameters<Holdfast['resend']>[0] };
    expect(await triage.node.resend(key)).toMatchObject({
      state: 'rejected',
      code: 'records_disagree',
      reason: 'No such payment.',
    });
  });

  it('[R-089][R-099] leaves doubt by the acceptance that its receiver had stored all the time', async () => {
    billing.line.lose('replies');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    world.advance(2 * HOUR_MS);
    await becomes(triage, 'in_doubt');
    expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    billing.line.lose('nothing');
    await becomes(triage, 'accepted');
    await agree(billing, 2);
  });

  it('[R-095] is refused by the tombstone when it arrives after it was withdrawn', async () => {
    billing.line.lose('requests');
    const { offer } = await world.handOff(triage, billing);
    await expect(triage.node.voidOffer(offer.key, 'another is asked')).resolves.toMatchObject({
      state: 'open',
      offer: { state: 'in_doubt' },
    });
    // A try that was under way when it came into doubt has failed by then.
    await pause(500);
    billing.line.lose('nothing');
    await becomes(triage, 'withdrawn');
    const late = await world.deliver(triage, billing, offer.message);
    expect(late.status.state).toBe('TASK_STATE_REJECTED');
    expect(late.artifacts?.[0]?.parts[0]?.data).toMatchObject({ code: 'withdrawn', final: true });
    expect(await world.owner(billing)).toBeNull();
    expect(await world.handOff(triage, billing)).toMatchObject({
      state: 'accepted',
      offer: { key: { attempt: 2 } },
    });
    await agree(billing, 2);
  });

  it('[R-099] is not withdrawn once it is accepted', async () => {
    billing.line.lose('replies');
    const { offer } = await world.handOff(triage, billing);
    await triage.down();
    billing.line.lose('nothing');
    await triage.up();
    expect(await triage.node.voidOffer(offer.key, 'too slow')).toMatchObject({ state: 'accepted', epoch: 2 });
    await agree(billing, 2);
  });

  it('freezes effects while it is out', async () => {
    let seen: unknown;
    billing.check = async () => {
      seen = await startRefund(triage.node, 'refund-1', 1).catch((error) => error.code);
      return accept();
    };
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted' });
    expect(seen).toBe('effects_frozen');
  });

  it('comes back, and the first owner may act again', async () => {
    await world.handOff(triage, billing);
    expect(await world.handOff(billing, triage)).toMatchObject({ state: 'accepted', epoch: 3 });
    await agree(triage, 3);
    await expect(startRefund(triage.node, 'refund-1', 3)).resolves.toMatchObject({ state: 'started' });
    await expect(startRefund(billing.node, 'refund-2', 2)).rejects.toMatchObject({ code: 'epoch_stale' });
    expect(await work(triage)).toMatchObject([{ state: 'open', epoch: 3 }]);
    expect(await work(billing)).toMatchObject([{ state: 'superseded', epoch: 2 }]);
  });

  it('[R-089] comes back to an owner that never heard of its acceptance: the receipt that comes along tells it', async () => {
    billing.line.lose('replies');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    expect(await world.handOff(billing, triage)).toMatchObject({ state: 'accepted', epoch: 3 });
    await agree(triage, 3);
    expect((await offers(triage)).find(({ key }) => key.sender === triage.url)).toMatchObject({
      state: 'accepted',
      receipt: expect.any(String),
    });
  });
});

describe('what happened elsewhere', () => {
  let world: World;

  beforeEach(async () => {
    world = await startOrganisations();
    await world.open();
  });
  afterEach(() => world.close());

  const partIn = (task: { artifacts?: readonly { parts: readonly { data?: unknown }[] }[] }) =>
    task.artifacts?.[0]?.parts[0]?.data;

  it('is proved to a third organisation by the receipts that come along', async () => {
    const { triage, billing, legal } = world;
    await world.handOff(triage, billing);
    expect(await world.handOff(billing, legal)).toMatchObject({ state: 'accepted', epoch: 3 });
    expect(await world.owner(legal)).toBe(`${legal.url} at 3`);
    expect(await auditProblems(legal, legal.node.caseRef('CASE-7001', triage.url))).toEqual([]);
    expect(await world.handOff(legal, billing)).toMatchObject({ state: 'accepted', epoch: 4 });
    // Triage trusts no receipt of an agent that nobody has configured there.
    const refused = await world.handOff(billing, triage);
    expect(refused).toMatchObject({
      state: 'rejected',
      code: 'provenance_unknown',
      fields: [{ path: 'provenance.1', problem: expect.stringContaining('no agent that is configured') }],
    });
    expect(await world.owner(triage)).toBe(`${billing.url} at 2`);
    expect(await world.owner(billing)).toBe(`${billing.url} at 4`);
  });

  it('[R-066] is believed from no receipt that does not verify, or is of another case', async () => {
    const { triage, billing } = world;
    await world.open('CASE-2');
    await world.handOff(triage, billing, 'CASE-2');
    billing.line.lose('replies');
    await world.handOff(triage, billing);
    triage.check = () => reject('records_disagree', 'Not now.');
    const { offer } = await world.handOff(billing, triage);
    const ref = world.ref();
    const [own] = await billing.node.ledger.snapshot(ref).then(({ transfers }) => transfers);
    const [other] = await billing.node.ledger
      .snapshot({ ...ref, caseId: 'CASE-2' })
      .then(({ transfers }) => transfers);
    const receipt = own?.receipt ?? '';
    const tampered = receipt.slice(0, -5) + (receipt.at(-5) === 'A' ? 'B' : 'A') + receipt.slice(-4);
    let attempt = 1;
    const deliver = (provenance: readonly (string | undefined)[]) => {
      attempt += 1;
      const message = JSON.parse(offer.message);
      message.messageId = `${offer.key.handoffId}:${attempt}`;
      const { data } = message.parts.find((part: { data?: object }) => part.data !== undefined);
      Object.assign(data, { attempt, provenance });
      return world.deliver(billing, triage, JSON.stringify(message));
    };
    for (const [provenance, code] of [
      [[tampered], 'provenance_invalid'],
      [[other?.receipt], 'provenance_invalid'],
      [[receipt, other?.receipt], 'provenance_invalid'],
      [['e30.e30.e30'], 'provenance_unknown'],
      [[], 'epoch_ahead'],
    ] as const) {
      expect(partIn(await deliver(provenance)), code).toMatchObject({ accepted: false, code, final: true });
    }
    expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    triage.check = () => accept();
    expect(partIn(await deliver([receipt]))).toMatchObject({ accepted: true, epoch: 3 });
    expect(await world.owner(triage)).toBe(`${triage.url} at 3`);
  });
});
