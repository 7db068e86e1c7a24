import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clarify, decideLater } from '../../src/index.js';
import type { LedgerStore } from '../../src/ledger/index.js';
import { CONTRACT } from '../cli/support.js';
import { answered, type Organisation, startOrganisations, type World } from './organisations.js';

const WAIT = { timeout: 15_000, interval: 20 };
const HOUR_MS = 3_600_000;

describe('an organisation', () => {
  let world: World;
  let triage: Organisation;
  let billing: Organisation;

  beforeEach(async () => {
    world = await startOrganisations(['triage', 'billing']);
    ({ triage, billing } = world);
  });
  afterEach(() => world.close());

  const ref = (caseId = 'CASE-7001') => ({ tenant: 'default', root: triage.url, caseId });
  /** What a peer that lies has done in its own ledger. */
  const ledgerOf = ({ node }: Organisation) => node.ledger as LedgerStore;
  const attention = ({ node }: Organisation) => node.ledger.listAttention('default');
  const restart = async (one: Organisation) => {
    await one.down();
    await one.up();
    await answered(one.node);
  };

  /** Billing signs, and keeps as its own, that it accepted a case that it was never offered. */
  async function claim(caseId: string): Promise<void> {
    const { node } = billing;
    const key = { ...ref(caseId), sender: triage.url, handoffId: `${caseId}:2`, attempt: 1 };
    const digest = 'd'.repeat(64);
    const receipt = await node.identity.signReceipt({
      iss: billing.url,
      root: triage.url,
      case_id: caseId,
      handoff_id: key.handoffId,
      attempt: 1,
      from_agent: triage.url,
      to_agent: billing.url,
      old_epoch: 1,
      new_epoch: 2,
      digest,
      incarnation: 'inc',
      iat: 1,
      jti: `receipt_${caseId}`,
    });
    const { tenant, root } = ref();
    const { caseId: _, ...acceptanceKey } = key;
    await ledgerOf(billing).accept({
      key: acceptanceKey,
      ref: ref(caseId),
      kind: 'refund',
      toAgent: billing.url,
      epoch: 1,
      digest,
      contract: CONTRACT,
      acceptBy: '2099-01-01T00:00:00.000Z',
      constraints: { caps: {}, prohibitions: [], operations: null },
      hops: [triage.url],
      tasksLeft: 3,
      envelope: '{}',
      workId: `work_${caseId}`,
      answer: '{}',
      task: {
        id: `task_${caseId}`,
        contextId: 'ctx_1',
        state: 'TASK_STATE_COMPLETED',
        statusAt: '2026-01-01T00:00:00.000Z',
        task: '{}',
      },
      principal: { agent: triage.url, tenant, tokenId: 'jti' },
      loggable: {},
      separate: {
        provenance: [],
        effects: [],
        incarnation: (await triage.node.ledger.getIncarnation(triage.url))?.incarnation ?? '',
        receipt,
        receiptKey: JSON.stringify(node.identity.publicKey),
      },
    });
    expect(await node.ledger.getCase({ tenant, root, caseId })).toMatchObject({ owner: billing.url });
  }

  it('[R-062] loses no case of a shared kind to a peer that claims it', async () => {
    const refund = await triage.node.ledger.getKind('default', 'refund');
    if (refund === null) throw new Error('no kind');
    await ledgerOf(triage).putKind('default', { ...refund, kind: 'local', mode: 'shared' });
    await triage.node.openCase({ caseId: 'CASE-9', kind: 'local' });
    await claim('CASE-9');
    await restart(triage);
    expect(await world.owner(triage, 'CASE-9')).toBe(`${triage.url} at 1`);
    expect(await attention(triage)).toEqual([]);
  });

  it('[R-062] loses no case to a peer that may not be handed cases of its kind', async () => {
    const refund = await triage.node.ledger.getKind('default', 'refund');
    if (refund === null) throw new Error('no kind');
    await ledgerOf(triage).putKind('default', { ...refund, kind: 'secret', contracts: ['other/1'] });
    await ledgerOf(triage).openCase({
      ref: ref('CASE-9'),
      kind: 'secret',
      owner: triage.url,
      epoch: 1,
      actor: triage.url,
    });
    await claim('CASE-9');
    await restart(triage);
    expect(await world.owner(triage, 'CASE-9')).toBe(`${triage.url} at 1`);
  });

  it('[R-062] closes a case for good, and a claim to it is a contradiction', async () => {
    await world.open();
    await triage.node.closeCase({ ref: ref(), epoch: 1 });
    await claim('CASE-7001');
    await restart(triage);
    expect(await world.owner(triage)).toBe(`${triage.url} at 1`);
    expect(await attention(triage)).toMatchObject([{ what: 'case_quarantined' }]);
  });

  it('[R-137] learns at its start that an offer was accepted of which a person had said that it was not', async () => {
    await world.open();
    billing.line.lose('replies');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    billing.line.lose('requests');
    world.advance(2 * HOUR_MS);
    const offers = () => triage.node.ledger.listOffers('default', {});
    await vi.waitFor(async () => expect(await offers()).toMatchObject([{ state: 'in_doubt' }]), WAIT);
    const said = { ref: ref(), person: 'ann', reason: 'they say that they never had it' };
    await triage.node.takeCase({ ...said, epoch: 1, force: true });
    const key = (await offers())[0]?.key as Parameters<typeof triage.node.resend>[0];
    await triage.node.settleDoubt({ ...said, key });
    expect(await attention(triage)).toEqual([]);
    billing.line.lose('nothing');
    await restart(triage);
    expect(await attention(triage)).toMatchObject([
      { what: 'case_quarantined', data: { reason: 'receipt_contradicted' } },
    ]);
  });

  it('[R-064] hands a case over though its ledger has lost that the attempt was rejected before', async () => {
    await world.open();
    await triage.down();
    await triage.disks.keep();
    await triage.up();
    await answered(triage.node);
    billing.check = () => ({ verdict: 'reject', code: 'records_disagree', reason: 'no such payment' });
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'rejected' });
    await triage.down();
    await triage.disks.putBack();
    await triage.up();
    await answered(triage.node);
    billing.check = () => ({ verdict: 'accept' });
    const first = await world.handOff(triage, billing);
    expect(['rejected', 'withdrawn']).toContain(first.state);
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'accepted', epoch: 2 });
  });

  it('[R-166] neither accepts nor rejects what its sender may have lost', async () => {
    await world.open();
    await triage.down();
    await triage.disks.keep();
    await triage.up();
    await answered(triage.node);
    billing.line.lose('requests');
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    const [offer] = await triage.node.ledger.listOffers('default', {});
    const message = offer?.message ?? '';
    await triage.down();
    await triage.disks.putBack();
    billing.line.lose('nothing');
    await triage.up();
    await answered(triage.node);
    billing.check = () => ({ verdict: 'reject', code: 'records_disagree', reason: 'no such payment' });
    await world.deliver(triage, billing, message).catch(() => undefined);
    expect(await ledgerOf(billing).listDecisions(ref(), triage.url, 5)).toEqual([]);
  });

  it('[R-166] lets a person reject nothing before the sender has said what it holds', async () => {
    await world.open();
    billing.check = () => decideLater();
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    await billing.down();
    await billing.disks.keep();
    await billing.up();
    await answered(billing.node);
    const [pending] = await billing.node.listPending();
    if (pending === undefined) throw new Error('nothing waits');
    await billing.node.acceptPending({ key: pending.key, person: 'bob' });
    await vi.waitFor(async () => expect(await world.owner(triage)).toBe(`${billing.url} at 2`), WAIT);
    await billing.down();
    await billing.disks.putBack();
    await triage.down();
    await billing.up();
    await expect(
      billing.node.rejectPending({
        key: pending.key,
        person: 'bob',
        code: 'records_disagree',
        reason: 'no such payment',
      }),
    ).rejects.toMatchObject({ code: 'peers_unanswered' });
    world.advance(2 * HOUR_MS);
    await new Promise((done) => setTimeout(done, 500));
    expect(await billing.node.ledger.findDecision(pending.key)).toBeNull();
  });

  it('[R-093] gives no answer to another question than it was given for', async () => {
    await world.open();
    billing.check = ({ clarifications }) =>
      clarifications.length === 0 ? clarify('Which payment is it?') : decideLater();
    await billing.down();
    await billing.disks.keep();
    await billing.up();
    await answered(billing.node);
    expect(await world.handOff(triage, billing)).toMatchObject({ state: 'open' });
    const [offer] = await triage.node.ledger.listOffers('default', {});
    if (offer === undefined) throw new Error('no offer');
    await triage.node.answerQuestion({ key: offer.key, text: 'yes' });
    await billing.down();
    await billing.disks.putBack();
    billing.check = ({ clarifications }) =>
      clarifications.length === 0 ? clarify('Shall all of them be paid back?') : decideLater();
    await billing.up();
    await vi.waitFor(
      async () =>
        expect((await triage.node.ledger.getSentTask(offer.key))?.question?.text).toBe(
          'Shall all of them be paid back?',
        ),
      WAIT,
    );
    await new Promise((done) => setTimeout(done, 500));
    const [waits] = await billing.node.listPending();
    expect(waits?.clarifications).toMatchObject([{ answer: null }]);
  });
});
