import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { accept, type Holdfast, reject } from '../../src/index.js';
import {
  answered,
  auditProblems,
  type Organisation,
  startOrganisations,
  type World,
} from './organisations.js';

const HOUR_MS = 3_600_000;

describe('persons of two organisations with a ledger each', () => {
  let world: World;
  let triage: Organisation;
  let billing: Organisation;

  beforeEach(async () => {
    world = await startOrganisations(['triage', 'billing']);
    ({ triage, billing } = world);
    await world.open();
  });
  afterEach(() => world.close());

  const person = (of: Organisation, id = 'ann') => `person:${id}@${of.url}`;
  const by = (epoch: number, id = 'ann') => ({
    ref: world.ref(),
    epoch,
    person: id,
    reason: 'looked into by hand',
  });
  const around = async (of: Organisation, epoch: number) => {
    await of.node.takeCase(by(epoch));
    await of.node.returnCase(by(epoch + 1));
  };
  const lastOffer = async (of: Organisation) =>
    (await of.node.ledger.listOffers('default', { caseId: 'CASE-7001' }))[0];
  const becomes = (of: Organisation, state: string) =>
    vi.waitFor(async () => expect((await lastOffer(of))?.state).toBe(state), {
      timeout: 15_000,
      interval: 20,
    });
  const items = (of: Organisation) => of.node.ledger.listAttention('default');
  const startRefund = (node: Holdfast, epoch: number) =>
    node.startEffect({
      ...{ ref: world.ref(), epoch, key: 'refund-1', operation: 'refund' },
      amount: { amount: '10.00', currency: 'EUR' },
    });

  async function agree(owner: string, epoch: number): Promise<void> {
    for (const one of [triage, billing]) {
      expect(await world.owner(one), one.name).toBe(`${owner} at ${epoch}`);
      expect(await auditProblems(one, world.ref()), one.name).toEqual([]);
    }
  }

  /** Billing has not heard of the offer, and does not answer. */
  async function doubt(): Promise<void> {
    billing.line.lose('requests');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    await billing.down();
  }

  it('[R-062] pass a case on and back, and each ledger follows the epoch', async () => {
    await around(triage, 1);
    expect(await world.owner(triage)).toBe(`${triage.url} at 3`);
    await expect(startRefund(triage.node, 1)).rejects.toMatchObject({ code: 'epoch_stale' });
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 4 });
    await around(billing, 4);
    expect(await world.owner(triage)).toBe(`${billing.url} at 4`);
    expect(await world.handOff(billing, triage)).toMatchObject({ state: 'accepted', epoch: 7 });
    await agree(triage.url, 7);
    await around(triage, 7);
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 10 });
    await agree(billing.url, 10);
  });

  it('[R-062] hand a case over themselves, with an approval that goes along', async () => {
    await triage.node.takeCase(by(1));
    await expect(world.handOff(triage, billing)).rejects.toMatchObject({ code: 'not_owner' });
    const result = await world.handOff(triage, billing, 'CASE-7001', { person: 'ann' });
    expect(result).toMatchObject({ state: 'accepted', owner: billing.url, epoch: 3 });
    await agree(billing.url, 3);
    for (const [of, type] of [
      [triage, 'offer_intended'],
      [billing, 'handoff_accepted'],
    ] as const) {
      const entry = (await of.node.ledger.readAudit(world.ref())).find((one) => one.type === type);
      expect(entry?.data?.approval).toEqual({
        person: person(triage),
        digest: expect.stringMatching(/^[0-9a-f]{64}$/),
      });
    }
  });

  it('[R-062] are believed only in what they approved', async () => {
    await triage.node.takeCase(by(1));
    billing.check = () => reject('records_disagree', 'Not yet.');
    const { offer } = await world.handOff(triage, billing, 'CASE-7001', { person: 'ann' });
    billing.check = () => accept();
    let attempt = 1;
    const deliver = async (change: (envelope: { provenance: string[] }) => object) => {
      attempt += 1;
      const message = JSON.parse(offer.message);
      message.messageId = `${offer.key.handoffId}:${attempt}`;
      const { data } = message.parts.find((part: { data?: object }) => part.data !== undefined);
      Object.assign(data, { attempt, ...change(data) });
      const task = await world.deliver(triage, billing, JSON.stringify(message));
      return task.artifacts?.[0]?.parts[0]?.data;
    };
    const whole = await deliver(() => ({}));
    expect(whole, 'another attempt').toMatchObject({ accepted: false, code: 'provenance_invalid' });
    expect(await deliver(({ provenance }) => ({ provenance: provenance.slice(0, -1) }))).toMatchObject({
      accepted: false,
      code: 'not_owner',
    });
    expect(await world.owner(billing)).toBeNull();
  });

  it('[R-062][R-089] take a case only once its offer is closed by the receiver', async () => {
    await doubt();
    await expect(triage.node.takeCase(by(1))).rejects.toMatchObject({
      code: 'withdraw_needed',
      message: expect.stringContaining('attention show CASE-7001'),
    });
    expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    expect(await items(triage)).toMatchObject([
      { what: 'offer_in_doubt', data: { toAgent: billing.url, handoffId: 'CASE-7001:2', attempt: 1 } },
    ]);
    billing.line.lose('nothing');
    await billing.up();
    await answered(billing.node);
    expect(await triage.node.takeCase(by(1))).toMatchObject({ owner: person(triage), epoch: 2 });
    expect((await lastOffer(triage))?.state).toMatch(/withdrawn|expired/);
    expect(await items(triage)).toEqual([]);
  });

  it('[R-062] come too late where it was accepted', async () => {
    billing.line.lose('replies');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    billing.line.lose('nothing');
    await expect(triage.node.takeCase(by(1))).rejects.toMatchObject({
      code: expect.stringMatching(/offer_decided|epoch_stale/),
    });
    await becomes(triage, 'accepted');
    await agree(billing.url, 2);
  });

  it('[R-062] get a case that no agent takes', async () => {
    billing.line.lose('requests');
    const { offer } = await world.handOff(triage, billing);
    billing.line.lose('nothing');
    const escalated = triage.node.escalate({ key: offer.key, person: 'ann', reason: 'no agent takes it' });
    const outcome = await escalated.catch((error) => error);
    if (outcome instanceof Error) expect(outcome).toMatchObject({ code: 'offer_decided' });
    else expect(outcome).toMatchObject({ owner: person(triage), epoch: 2 });
  });

  describe('by force', () => {
    const force = () => triage.node.takeCase({ ...by(1), force: true });

    it('[R-137][R-096] go on at epoch + 2, until the receiver is back and never had the case', async () => {
      await doubt();
      world.advance(2 * HOUR_MS);
      await becomes(triage, 'in_doubt');
      expect(await force()).toMatchObject({ owner: person(triage), epoch: 3 });
      expect(await items(triage)).toMatchObject([{ what: 'risk_double_owner' }]);
      await triage.node.returnCase(by(3));
      await expect(startRefund(triage.node, 4)).rejects.toMatchObject({ code: 'effects_frozen' });
      billing.line.lose('nothing');
      await billing.up();
      await vi.waitFor(async () => expect(await items(triage)).toEqual([]), { timeout: 15_000 });
      expect(await startRefund(triage.node, 4)).toMatchObject({ state: 'started' });
      await triage.node.settleEffect({ ref: world.ref(), epoch: 4, key: 'refund-1', state: 'done' });
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 5 });
      await agree(billing.url, 5);
    });

    it('[R-137] close the case on both sides where the receiver had accepted it', async () => {
      billing.line.lose('replies');
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
      await billing.down();
      world.advance(2 * HOUR_MS);
      await becomes(triage, 'in_doubt');
      await force();
      billing.line.lose('nothing');
      await billing.up();
      for (const [of, epoch] of [
        [triage, 3],
        [billing, 2],
      ] as const) {
        await vi.waitFor(
          async () =>
            expect(await items(of), of.name).toMatchObject([
              { what: 'case_quarantined', data: { reason: 'receipt_contradicted', found: { epoch } } },
            ]),
          { timeout: 15_000, interval: 20 },
        );
      }
      await expect(startRefund(billing.node, 2)).rejects.toMatchObject({ code: 'case_quarantined' });
      await expect(triage.node.note({ ...by(3), text: 'x' })).rejects.toMatchObject({
        code: 'case_quarantined',
      });
    });

    it.each([
      { name: 'the person goes on with it', owner: () => person(triage), came: 3 },
      { name: 'the receiver keeps it', owner: () => billing.url, came: 4 },
    ])('[R-137] are settled on both sides by what was found: $name', async ({ owner, came }) => {
      billing.line.lose('replies');
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
      await billing.down();
      world.advance(2 * HOUR_MS);
      await becomes(triage, 'in_doubt');
      await force();
      billing.line.lose('nothing');
      await billing.up();
      for (const of of [triage, billing]) {
        await vi.waitFor(
          async () => expect(await items(of), of.name).toMatchObject([{ what: 'case_quarantined' }]),
          { timeout: 15_000, interval: 20 },
        );
      }
      const said = { ref: world.ref(), person: 'ann', reason: 'looked into on both sides', owner: owner() };
      const recovered = { owner: owner(), epoch: came };
      expect(await triage.node.recoverCase(said)).toMatchObject(recovered);
      expect(await billing.node.recoverCase({ ...said, seenEpoch: came })).toMatchObject(recovered);
      expect((await lastOffer(triage))?.state).toBe('withdrawn');
      await agree(owner(), came);
      const [from, to] = owner() === billing.url ? [billing, triage] : [triage, billing];
      const by = from === triage ? { person: 'ann' } : {};
      expect(await world.handOff(from, to, 'CASE-7001', by)).toMatchObject({ state: 'accepted' });
      await agree(to.url, came + 1);
      expect(await world.handOff(to, from)).toMatchObject({ state: 'accepted' });
      await agree(from.url, came + 2);
      for (const of of [triage, billing]) expect(await items(of), of.name).toEqual([]);
    });

    it('[R-137] close it by the envelope of the other side, too, which brings the proof', async () => {
      billing.line.lose('replies');
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
      billing.line.lose('requests');
      world.advance(2 * HOUR_MS);
      await becomes(triage, 'in_doubt');
      await force();
      const key = (await lastOffer(triage))?.key as Parameters<Holdfast['resend']>[0];
      const settled = {
        ref: world.ref(),
        person: 'ann',
        reason: 'they say that they never had it',
        minutes: 4,
      };
      expect(await triage.node.settleDoubt({ ...settled, key })).toMatchObject({ state: 'withdrawn' });
      expect(await items(triage)).toEqual([]);
      // They had.
      expect(await world.handOff(billing, triage)).toMatchObject({ state: 'open' });
      expect(await items(triage)).toMatchObject([{ what: 'case_quarantined' }]);
    });

    it('[R-137] close it at the receiver by the next offer of the case', async () => {
      billing.line.lose('replies');
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
      billing.line.lose('requests');
      world.advance(2 * HOUR_MS);
      await becomes(triage, 'in_doubt');
      await force();
      const key = (await lastOffer(triage))?.key as Parameters<Holdfast['resend']>[0];
      const settled = { ref: world.ref(), person: 'ann', reason: 'they say that they never had it' };
      await triage.node.settleDoubt({ ...settled, key });
      // A withdrawal that has left by then would be answered.
      await pause(500);
      billing.line.lose('nothing');
      await triage.node.returnCase(by(3));
      expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
      expect(await items(billing)).toMatchObject([
        { what: 'case_quarantined', data: { reason: 'receipt_contradicted' } },
      ]);
    });

    it('[R-137] take nothing of which nothing is in doubt', async () => {
      await expect(force()).rejects.toMatchObject({ code: 'usage' });
      expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    });
  });
});
