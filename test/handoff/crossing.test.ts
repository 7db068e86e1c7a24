import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HoldfastError, silentLogger } from '../../src/core/index.js';
import { createDelivery, createLease, type Delivery, type PeerClient } from '../../src/handoff/index.js';
import type { LedgerStore, OfferRow } from '../../src/ledger/index.js';
import {
  type ControlAnswer,
  type ControlRequest,
  RECEIPT_MEDIA_TYPE,
  REJECTION_MEDIA_TYPE,
  type Task,
} from '../../src/protocol/index.js';
import { createMemoryLedger } from '../../src/storage/index.js';
import {
  createNodeIdentity,
  createPeerDirectory,
  generateNodeKey,
  type NodeIdentity,
} from '../../src/trust/index.js';

const TRIAGE = 'https://triage.example';
const BILLING = 'https://billing.example';
const ref = { tenant: 'default', root: TRIAGE, caseId: 'CASE-1' };
const DIGEST = 'a'.repeat(64);

/** What a sender makes of every answer, with a receiver of which tests decide each word. */
describe('an offer to a receiver with a ledger of its own', () => {
  let ledger: LedgerStore;
  let delivery: Delivery;
  let offer: OfferRow;
  let billing: NodeIdentity;
  let mallory: NodeIdentity;
  let aheadMs: number;
  let onSend: () => Promise<Task>;
  let onControl: (request: ControlRequest) => Promise<ControlAnswer>;
  let asked: string[];

  const clock = { now: () => new Date(Date.now() + aheadMs) };
  const silence = () => Promise.reject(new HoldfastError('outcome_unknown'));
  const nothing = async (request: ControlRequest) => ({ ...request, state: 'none' }) as ControlAnswer;

  beforeEach(async () => {
    [aheadMs, asked, onSend, onControl] = [0, [], silence, silence];
    const identity = async (url: string) =>
      createNodeIdentity({ url, privateJwk: await generateNodeKey(), clock });
    [billing, mallory] = [await identity(BILLING), await identity(BILLING)];
    ledger = createMemoryLedger({ clock });
    await ledger.putKind('default', {
      kind: 'refund',
      systemOfRecord: 'payments',
      mode: 'separate',
      contracts: ['refund-dispute/1'],
      policy: { caps: {}, prohibitions: [], operations: { [TRIAGE]: ['refund'] } },
      limits: { maxHops: 2, maxTasks: 5, acceptWithinMs: 60_000, effectLimitMs: 30_000 },
    });
    await ledger.openCase({ ref, kind: 'refund', owner: TRIAGE, epoch: 1, actor: TRIAGE });
    offer = await ledger.intendOffer({
      ref,
      writer: TRIAGE,
      epoch: 1,
      attempt: 1,
      toAgent: BILLING,
      contract: 'refund-dispute/1',
      skill: 'billing',
      digest: DIGEST,
      message: '{}',
      acceptBy: new Date(Date.now() + 60_000).toISOString(),
      effects: [],
      withheld: [],
      loggable: {},
    });
    const client: PeerClient = {
      card: async () => ({}),
      getTask: () => Promise.reject(new HoldfastError('not_found')),
      send: () => {
        asked.push('send');
        return onSend();
      },
      control: (_url, request) => {
        asked.push(request.verb);
        return onControl(request) as never;
      },
    };
    delivery = createDelivery({
      self: TRIAGE,
      ledger,
      lease: createLease({ ledger, agent: TRIAGE, logger: silentLogger, leaseMs: 15_000, beatMs: 5_000 }),
      peers: createPeerDirectory([
        { url: BILLING, key: billing.thumbprint, tenant: 'default', contracts: [], skills: [] },
      ]),
      keys: { keysOf: async () => [...billing.jwks().keys, ...mallory.jwks().keys] },
      client,
      clock,
      logger: silentLogger,
      retryDelaysMs: [1],
      backoffMs: [1, 2],
      waitMs: 50,
    });
  });
  afterEach(() => ledger.close());

  async function receiptPart(by: NodeIdentity, over: Record<string, unknown> = {}) {
    const named = { root: TRIAGE, case_id: 'CASE-1', handoff_id: 'CASE-1:2', attempt: 1 };
    const receipt = await by.signReceipt({
      iss: BILLING,
      ...named,
      from_agent: TRIAGE,
      to_agent: BILLING,
      old_epoch: 1,
      new_epoch: 2,
      digest: DIGEST,
      incarnation: 'inc',
      iat: 1,
      jti: 'receipt_1',
      ...over,
    });
    return { accepted: true, ...named, epoch: 2, work_item: 'work_1', receipt };
  }
  const rejectionPart = (over: Record<string, unknown> = {}) => ({
    accepted: false,
    root: TRIAGE,
    case_id: 'CASE-1',
    handoff_id: 'CASE-1:2',
    attempt: 1,
    code: 'records_disagree',
    reason: 'No such payment.',
    fields: [],
    retryable: true,
    final: true,
    ...over,
  });
  const taskOf = (data: Record<string, unknown>): Task => {
    const mediaType = data.accepted ? RECEIPT_MEDIA_TYPE : REJECTION_MEDIA_TYPE;
    return {
      id: 'task_1',
      contextId: 'ctx_1',
      status: {
        state: data.accepted ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_REJECTED',
        timestamp: '2026-01-31T10:00:00.000Z',
      },
      artifacts: [{ artifactId: 'a', parts: [{ data: data as never, mediaType }] }],
    };
  };
  const decided =
    (verdict: string, answer: object, digest?: string) =>
    async (request: ControlRequest): Promise<ControlAnswer> =>
      ({
        ...request,
        state: 'decided',
        decision: {
          handoff_id: 'CASE-1:2',
          attempt: 1,
          verdict,
          decided_at: '2026-01-31T10:00:00.000Z',
          ...(digest === undefined ? {} : { digest }),
          answer,
        },
      }) as ControlAnswer;
  const stillOurs = async () => {
    expect(await ledger.getCase(ref)).toMatchObject({ owner: TRIAGE, epoch: 1 });
    await expect(
      ledger.startEffect({ ref, writer: TRIAGE, epoch: 1, key: 'r1', operation: 'refund', amount: null }),
    ).rejects.toMatchObject({ code: 'effects_frozen' });
  };

  it('[R-061][R-066] is released by the receipt, and by no other signature or other claims', async () => {
    const wrong = [
      await receiptPart(mallory),
      await receiptPart(billing, { digest: 'b'.repeat(64) }),
      await receiptPart(billing, { attempt: 2 }),
      await receiptPart(billing, { case_id: 'CASE-2' }),
      await receiptPart(billing, { new_epoch: 3 }),
      await receiptPart(billing, { from_agent: BILLING }),
      { ...(await receiptPart(billing)), epoch: 3 },
    ];
    for (const part of wrong) {
      onSend = async () => taskOf(part);
      onControl = decided('accepted', part, DIGEST);
      expect(await delivery.resend(offer.key)).toMatchObject({ state: 'open', problem: 'receipt_invalid' });
      await stillOurs();
    }
    onSend = async () => taskOf(await receiptPart(billing));
    onControl = nothing;
    expect(await delivery.resend(offer.key)).toMatchObject({
      state: 'accepted',
      epoch: 2,
      workItem: 'work_1',
    });
    expect(await ledger.getCase(ref)).toMatchObject({ owner: BILLING, epoch: 2 });
    expect(await delivery.resend(offer.key)).toMatchObject({ state: 'accepted', workItem: null });
  });

  it('[R-064] is closed by a final rejection of this very attempt, and by no other', async () => {
    for (const over of [
      { attempt: 2 },
      { case_id: 'CASE-2' },
      { root: BILLING },
      { handoff_id: 'CASE-1:3' },
    ]) {
      onSend = async () => taskOf(rejectionPart(over));
      onControl = decided('rejected', rejectionPart(over), DIGEST);
      expect(await delivery.resend(offer.key)).toMatchObject({ state: 'open', problem: 'peer_error' });
      await stillOurs();
    }
    onSend = async () => taskOf(rejectionPart());
    onControl = nothing;
    expect(await delivery.resend(offer.key)).toMatchObject({ state: 'rejected', code: 'records_disagree' });
    expect(await ledger.getOffer(offer.key)).toMatchObject({ state: 'rejected' });
  });

  it('[R-088] is asked about before it is sent again, and then sent as it was', async () => {
    await delivery.resend(offer.key);
    expect(asked).toEqual(['send', 'handoff.query', 'send']);
    asked = [];
    onControl = nothing;
    await delivery.resend(offer.key);
    expect(asked).toEqual(['send', 'handoff.query', 'send']);
    await stillOurs();
    onControl = decided('rejected', rejectionPart(), DIGEST);
    expect(await delivery.resend(offer.key)).toMatchObject({ state: 'rejected' });
  });

  it('is withdrawn where a rejection closes nothing, and is in doubt where that is not answered', async () => {
    onSend = async () => taskOf(rejectionPart({ code: 'version_unknown', final: false }));
    expect(await delivery.resend(offer.key)).toMatchObject({ state: 'open', offer: { state: 'in_doubt' } });
    await stillOurs();
    onControl = decided('withdrawn', rejectionPart({ code: 'withdrawn' }));
    expect(await delivery.withdraw(offer.key, 'again')).toMatchObject({ state: 'withdrawn' });
    expect(await ledger.getCase(ref)).toMatchObject({ owner: TRIAGE, epoch: 1 });
  });

  it('[R-089][R-096] stays in doubt whatever is no decision, and leaves it by one', async () => {
    aheadMs = 120_000;
    const answers: (typeof onControl)[] = [
      silence,
      nothing,
      () => Promise.reject(new HoldfastError('peer_error')),
      () => Promise.reject(new HoldfastError('peer_unreachable')),
      decided('withdrawn', rejectionPart({ code: 'withdrawn', final: false })),
      decided('withdrawn', rejectionPart({ code: 'withdrawn', attempt: 2 })),
      decided('rejected', rejectionPart()),
      decided('rejected', rejectionPart({ attempt: 2 }), 'b'.repeat(64)),
    ];
    for (const answer of answers) {
      onControl = answer;
      expect(await delivery.withdraw(offer.key, 'late')).toMatchObject({ offer: { state: 'in_doubt' } });
      await stillOurs();
    }
    const pursuing = new AbortController();
    const ended = delivery.pursue(offer, pursuing.signal);
    onControl = decided('accepted', await receiptPart(billing), DIGEST);
    await ended;
    expect(await ledger.getOffer(offer.key)).toMatchObject({ state: 'accepted' });
    expect(await ledger.getCase(ref)).toMatchObject({ owner: BILLING, epoch: 2 });
    expect(asked).not.toContain('send');
  });

  it('[R-089] is closed where other bytes were rejected under its key, which can be accepted no more then', async () => {
    onSend = async () => taskOf(rejectionPart({ code: 'duplicate_conflict', final: false }));
    onControl = decided('rejected', rejectionPart(), 'b'.repeat(64));
    expect(await delivery.resend(offer.key)).toMatchObject({
      ...{ state: 'rejected', code: 'duplicate_conflict' },
      offer: { state: 'withdrawn' },
    });
    expect(await ledger.getCase(ref)).toMatchObject({ owner: TRIAGE, epoch: 1 });
  });

  it('[R-089] does not leave again once it is in doubt', async () => {
    await delivery.withdraw(offer.key, 'another is asked');
    asked = [];
    onSend = async () => taskOf(await receiptPart(billing));
    await delivery.resend(offer.key);
    expect(asked).toEqual(['handoff.withdraw', 'handoff.withdraw']);
    expect(await ledger.getOffer(offer.key)).toMatchObject({ state: 'in_doubt' });
  });

  it('[R-099] quarantines the case when a receipt turns up for what was closed', async () => {
    onSend = async () => taskOf(rejectionPart());
    await delivery.resend(offer.key);
    const part = await receiptPart(billing);
    const { key, toAgent, digest } = offer;
    const transfer = {
      key,
      ref,
      toAgent,
      oldEpoch: 1,
      newEpoch: 2,
      digest,
      receipt: part.receipt,
      receiptKey: '{}',
    };
    await expect(ledger.releaseOffer(transfer)).rejects.toMatchObject({ code: 'case_quarantined' });
  });
});
