import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HoldfastError } from '../../src/core/index.js';
import { statusPointer } from '../../src/handoff/index.js';
import type { Message } from '../../src/protocol/index.js';
import { answerOf, BILLING, caseFileOf, createWorld, TRIAGE, type World } from './world.js';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const envelopeOf = (message: Message) => message.parts[1]?.data as Record<string, unknown>;

describe('handing a case over', () => {
  it('[R-060][R-061][R-165] stores the intent before anything is sent, and owns the case until the acceptance', async () => {
    const ref = await world.openCase('CASE-7001', 3);
    const before: unknown[] = [];
    world.wire.onSend = async (_message, deliver) => {
      const offer = await world.lastOffer('CASE-7001');
      const row = await world.ledger.getCase(ref);
      before.push(offer.state, offer.message === world.sent[0], row?.owner, row?.epoch);
      await world.ledger.addNote({ ref, writer: TRIAGE, epoch: 3, text: 'still ours' });
      return deliver();
    };
    const result = await world.sender.handOff(world.input(ref));
    expect(before).toEqual(['offered', true, TRIAGE, 3]);
    expect(result).toMatchObject({ state: 'accepted', owner: BILLING, epoch: 4 });
    expect(await world.ledger.getCase(ref)).toMatchObject({ owner: BILLING, epoch: 4 });
    expect(world.accepted).toHaveLength(1);
  });

  it('[R-063] tells a former owner no more than where the case is', async () => {
    const ref = await world.openCase('CASE-7002');
    expect(await statusPointer(world.ledger, TRIAGE, ref)).toMatchObject({ status: 'owned_here' });
    await world.sender.handOff(world.input(ref));
    expect(await statusPointer(world.ledger, TRIAGE, ref)).toEqual({
      case_id: 'CASE-7002',
      root: TRIAGE,
      status: 'handed_off',
      owner: BILLING,
    });
  });

  it('[R-023][R-024][R-025][R-026][R-027][R-039][R-041][R-045][R-082][R-167] names case, handoff, both agents and chain in the envelope, and carries no context of its own', async () => {
    const ref = await world.openCase('CASE-7003', 3);
    await world.sender.handOff(
      world.input(ref, { caseFile: caseFileOf('CASE-7003', { source_task_id: 'task-9' }) }),
    );
    const message = JSON.parse(world.sent[0] ?? '') as Message;
    expect(message.messageId).toBe('CASE-7003:4:1');
    expect(message.contextId).toBeUndefined();
    expect(message.taskId).toBeUndefined();
    expect(envelopeOf(message)).toMatchObject({
      case_id: 'CASE-7003',
      handoff_id: 'CASE-7003:4',
      from_agent: TRIAGE,
      to_agent: BILLING,
      epoch: 3,
      chain: { hops: [TRIAGE], tasks_left: 5 },
    });
  });

  it('[R-064][R-082][R-105][R-106] stays the owner at the same epoch after a rejection; the corrected attempt is judged afresh', async () => {
    const ref = await world.openCase('CASE-7004', 3);
    world.handler.current = {
      check: () => ({
        verdict: 'reject',
        code: 'records_disagree',
        reason: 'pay_B is not in our records',
        fields: [{ path: 'facts.payment_b', problem: 'unknown' }],
      }),
    };
    const rejected = await world.sender.handOff(world.input(ref));
    expect(rejected).toMatchObject({ state: 'rejected', code: 'records_disagree', retryable: true });
    expect(await world.ledger.getCase(ref)).toMatchObject({ owner: TRIAGE, epoch: 3 });
    world.handler.current = {};
    const accepted = await world.sender.handOff(world.input(ref));
    expect(accepted).toMatchObject({ state: 'accepted', epoch: 4 });
    expect((await world.lastOffer('CASE-7004')).key.attempt).toBe(2);
  });

  it('[R-065][R-083] learns from the ledger what a lost answer said, and sends the identical bytes when nothing is decided', async () => {
    const ref = await world.openCase('CASE-7005');
    world.wire.onSend = async (_message, deliver) => {
      if (world.sent.length === 1) throw new HoldfastError('outcome_unknown', 'the request was lost');
      await deliver();
      throw new HoldfastError('outcome_unknown', 'the answer was lost');
    };
    const result = await world.sender.handOff(world.input(ref));
    expect(result).toMatchObject({ state: 'accepted', epoch: 2 });
    // The receipt of the lost answer is verified and kept all the same.
    expect((await world.lastOffer('CASE-7005')).receipt?.split('.')).toHaveLength(3);
    expect(world.sent).toHaveLength(2);
    expect(world.sent[1]).toBe(world.sent[0]);
    expect(world.accepted).toHaveLength(1);
  });

  it('[R-065] leaves the offer open when no answer comes, and finishes it after a restart with the stored bytes', async () => {
    const ref = await world.openCase('CASE-7006');
    world.wire.onSend = async () => {
      throw new HoldfastError('peer_unreachable');
    };
    const open = await world.sender.handOff(world.input(ref));
    expect(open).toMatchObject({ state: 'open', problem: 'peer_unreachable' });
    expect(await world.ledger.getCase(ref)).toMatchObject({ owner: TRIAGE, epoch: 1 });
    world.wire.onSend = null;
    expect(await world.takeUp()).toEqual(['CASE-7006 accepted']);
    expect(new Set(world.sent).size).toBe(1);
    expect(await world.takeUp()).toEqual([]);
  });

  it('[R-066] quarantines a case that was accepted, as its receiver signs, and not in this ledger', async () => {
    const ref = await world.openCase('CASE-7008');
    world.wire.onSend = async () => {
      const { digest } = await world.lastOffer('CASE-7008');
      const named = { root: TRIAGE, case_id: 'CASE-7008', handoff_id: 'CASE-7008:2', attempt: 1 };
      const receipt = await world.identities.billing.signReceipt({
        iss: BILLING,
        ...named,
        from_agent: TRIAGE,
        to_agent: BILLING,
        old_epoch: 1,
        new_epoch: 2,
        digest,
        incarnation: 'another-ledger',
        iat: 1,
        jti: 'r',
      });
      const data = { accepted: true, ...named, epoch: 2, work_item: 'work_x', receipt };
      return {
        id: 't',
        contextId: 'c',
        status: { state: 'TASK_STATE_COMPLETED', timestamp: new Date().toISOString() },
        artifacts: [
          {
            artifactId: 'receipt',
            parts: [{ data, mediaType: 'application/vnd.holdfast.receipt.v1+json' }],
          },
        ],
      };
    };
    expect(await world.sender.handOff(world.input(ref))).toMatchObject({
      state: 'open',
      problem: 'case_quarantined',
    });
    expect(await world.ledger.listQuarantined('default')).toMatchObject([
      { ref, reason: 'receipt_contradicted', witnessed: { epoch: 2 }, found: { epoch: 1 } },
    ]);
    const { key } = await world.lastOffer('CASE-7008');
    await expect(world.sender.withdraw(key, 'give up')).rejects.toMatchObject({ code: 'case_quarantined' });
  });

  it('[R-066][R-165] does not release on a receipt that another key signed or that is about another offer', async () => {
    const ref = await world.openCase('CASE-7007');
    world.wire.onSend = async (message) => {
      const digest = 'a'.repeat(64);
      const signer = world.sent.length === 1 ? world.identities.triage : world.identities.billing;
      const receipt = await signer.signReceipt({
        iss: BILLING,
        root: TRIAGE,
        case_id: 'CASE-7007',
        handoff_id: 'CASE-7007:2',
        attempt: 1,
        from_agent: TRIAGE,
        to_agent: BILLING,
        old_epoch: 1,
        new_epoch: 2,
        digest,
        incarnation: 'x',
        iat: 1,
        jti: 'r',
      });
      const part = {
        accepted: true,
        root: TRIAGE,
        case_id: 'CASE-7007',
        handoff_id: 'CASE-7007:2',
        attempt: 1,
        epoch: 2,
        work_item: 'work_x',
        receipt,
      };
      return {
        id: `t-${message.messageId}`,
        contextId: 'c',
        status: { state: 'TASK_STATE_COMPLETED', timestamp: new Date().toISOString() },
        artifacts: [
          {
            artifactId: 'receipt',
            parts: [{ data: part, mediaType: 'application/vnd.holdfast.receipt.v1+json' }],
          },
        ],
      };
    };
    const byWrongKey = await world.sender.handOff(world.input(ref));
    expect(byWrongKey).toMatchObject({ state: 'open', problem: 'receipt_invalid' });
    const aboutOther = await world.sender.resend((await world.lastOffer('CASE-7007')).key);
    expect(aboutOther).toMatchObject({ state: 'open', problem: 'receipt_invalid' });
    expect(await world.ledger.getCase(ref)).toMatchObject({ owner: TRIAGE, epoch: 1 });
  });

  it('keeps the verified receipt with the key that verified it', async () => {
    const ref = await world.openCase('CASE-7008');
    const result = await world.sender.handOff(world.input(ref));
    if (result.state !== 'accepted') throw new Error(result.state);
    expect(result.offer.receipt?.split('.')).toHaveLength(3);
    expect(JSON.parse(result.offer.receiptKey ?? '')).toMatchObject({ kty: 'OKP', crv: 'Ed25519' });
  });

  it('takes an offer back in the ledger, so that its late arrival is refused', async () => {
    const ref = await world.openCase('CASE-7009');
    world.wire.onSend = async () => {
      throw new HoldfastError('peer_unreachable');
    };
    await world.sender.handOff(world.input(ref));
    const offer = await world.lastOffer('CASE-7009');
    expect(await world.sender.withdraw(offer.key, 'sent to the wrong agent')).toMatchObject({
      state: 'withdrawn',
    });
    const late = [
      await world.deliver(JSON.parse(offer.message)),
      await world.deliver(JSON.parse(offer.message)),
    ];
    expect(late.map((task) => [task.status.state, answerOf(task).code])).toEqual([
      ['TASK_STATE_REJECTED', 'withdrawn'],
      ['TASK_STATE_REJECTED', 'withdrawn'],
    ]);
    expect(late[0]?.id).toBe(late[1]?.id);
    expect(await world.ledger.getCase(ref)).toMatchObject({ owner: TRIAGE, epoch: 1 });
    expect(await world.sender.withdraw(offer.key, 'again')).toMatchObject({ state: 'withdrawn' });
  });

  it('[R-046][R-170] does not send when a signed URL would expire before the offer does', async () => {
    const ref = await world.openCase('CASE-7010');
    const refused = world.sender.handOff(world.input(ref, { acceptWithinMs: 2 * 86_400_000 }));
    await expect(refused).rejects.toMatchObject({ code: 'evidence_expires_early' });
    expect(await world.ledger.listOffers('default', { caseId: 'CASE-7010' })).toEqual([]);
  });

  it('stores nothing for an unknown peer, a missing artifact, another owner or a case file of another case', async () => {
    const ref = await world.openCase('CASE-7011');
    const fails = async (change: Parameters<World['input']>[1], code: string) =>
      expect(world.sender.handOff(world.input(ref, change))).rejects.toMatchObject({ code });
    await fails({ to: 'https://stranger.example' }, 'peer_unknown');
    await fails({ contract: 'refund-dispute/9' }, 'contract_missing');
    await fails({ evidence: [{ artifactId: 'art_none' }] }, 'evidence_file_missing');
    await fails({ evidence: [] }, 'evidence_empty');
    await fails({ caseFile: caseFileOf('CASE-7012') }, 'case_file_invalid');
    await fails({ ref: { ...ref, caseId: 'CASE-9' }, caseFile: caseFileOf('CASE-9') }, 'case_unknown');
    expect(await world.ledger.listOffers('default', {})).toEqual([]);
    await world.sender.handOff(world.input(ref));
    await fails({}, 'not_owner');
  });

  it('[R-065] goes on with an open offer until it can be finished, and finishes all others meanwhile', async () => {
    const refs = [];
    for (const caseId of ['CASE-7020', 'CASE-7021', 'CASE-7022']) {
      const ref = await world.openCase(caseId);
      world.wire.onSend = async () => {
        throw new HoldfastError('peer_unreachable');
      };
      await world.sender.handOff(world.input(ref));
      refs.push(ref);
    }
    const order: string[] = [];
    world.wire.onSend = async (message, deliver) => {
      const caseId = message.messageId.slice(0, 9);
      const others = order.includes('CASE-7020') && order.includes('CASE-7022');
      if (caseId === 'CASE-7021' && !others) throw new TypeError('a bug of ours');
      order.push(caseId);
      return deliver();
    };
    expect(await world.takeUp()).toEqual(['CASE-7020 accepted', 'CASE-7021 accepted', 'CASE-7022 accepted']);
    expect(order.at(-1)).toBe('CASE-7021');
  });

  it('[R-065] says how an offer ended that another process decided or withdrew before it was sent', async () => {
    const ref = await world.openCase('CASE-7023');
    const { markOffered } = world.ledger;
    world.ledger.markOffered = async (key) => {
      world.ledger.markOffered = markOffered;
      await world.sender.withdraw(key, 'by another process');
      return markOffered(key);
    };
    expect(await world.sender.handOff(world.input(ref))).toMatchObject({ state: 'withdrawn' });
    expect(world.sent).toEqual([]);
    world.ledger.markOffered = async (key) => {
      world.ledger.markOffered = markOffered;
      await world.sender.resend(key);
      return markOffered(key);
    };
    expect(await world.sender.handOff(world.input(ref))).toMatchObject({ state: 'accepted', epoch: 2 });
    expect(world.accepted).toHaveLength(1);
  });

  it('begins no further offer once it is told to stop', async () => {
    const stop = new AbortController();
    for (let n = 0; n < 9; n += 1) {
      const ref = await world.openCase(`CASE-80${n}`);
      world.wire.onSend = async () => {
        throw new HoldfastError('peer_unreachable');
      };
      await world.sender.handOff(world.input(ref));
    }
    const before = world.sent.length;
    world.wire.onSend = async () => {
      stop.abort();
      throw new HoldfastError('outcome_unknown');
    };
    const left = await world.takeUp(stop.signal);
    expect(left.map((line) => line.split(' ')[1])).toEqual(Array(9).fill('offered'));
    // Four at a time go to one peer.
    expect(world.sent.length).toBeLessThanOrEqual(before + 4);
    expect(world.sent.length).toBeGreaterThan(before);
  });

  it('[R-060] stores no offer whose envelope says less of the effects than the ledger', async () => {
    const ref = await world.openCase('CASE-7026');
    const kind = await world.ledger.getKind('default', 'refund-dispute');
    if (!kind) throw new Error('no kind');
    const policy = { ...kind.policy, operations: { [TRIAGE]: ['refund'] } };
    await world.ledger.putKind('default', { ...kind, policy }, { replace: true });
    const effect = { ref, writer: TRIAGE, epoch: 1, key: 'refund-1' };
    const start = { ...effect, operation: 'refund', amount: { amount: '1.00', currency: 'EUR' } };
    const changes: Record<string, () => Promise<unknown>> = {
      'started and settled': async () => {
        await world.ledger.startEffect(start);
        await world.ledger.settleEffect({ ...effect, state: 'unknown', outcome: null });
      },
      settled: () => world.ledger.settleEffect({ ...effect, state: 'failed', outcome: null }),
      'started again and settled': async () => {
        await world.ledger.startEffect(start);
        await world.ledger.settleEffect({ ...effect, state: 'failed', outcome: null });
      },
    };
    const { listEffects } = world.ledger;
    for (const [how, change] of Object.entries(changes)) {
      // Another process acts for the same agent, just after this one has read the effects.
      world.ledger.listEffects = async (of) => {
        const read = await listEffects(of);
        await change();
        return read;
      };
      await expect(world.sender.handOff(world.input(ref)), how).rejects.toMatchObject({
        code: 'case_changed',
        data: { key: 'refund-1' },
      });
    }
    world.ledger.listEffects = listEffects;
    expect(world.sent).toEqual([]);
    expect(await world.sender.handOff(world.input(ref))).toMatchObject({ state: 'accepted' });
  });
});
