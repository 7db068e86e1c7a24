import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Verdict } from '../../src/contract/index.js';
import type { Message } from '../../src/protocol/index.js';
import { answerOf, BILLING, createWorld, MALLORY, TRIAGE, type World } from './world.js';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

type Envelope = Record<string, unknown> & { references: Record<string, unknown>[] };

/** The message of an offer that is stored and was never delivered. */
async function heldOffer(caseId: string, epoch = 3): Promise<Message> {
  const ref = await world.openCase(caseId, epoch);
  world.wire.onSend = async () => {
    throw new (await import('../../src/core/index.js')).HoldfastError('peer_unreachable');
  };
  await world.sender.handOff(world.input(ref));
  world.wire.onSend = null;
  return JSON.parse((await world.lastOffer(caseId)).message) as Message;
}

/** The same offer changed, as a sender with a bug or a grudge would write it: on a case that has no offer row. */
async function forged(
  caseId: string,
  change: (envelope: Envelope, message: Message) => void,
): Promise<Message> {
  const message = await heldOffer(caseId);
  await world.sender.withdraw((await world.lastOffer(caseId)).key, 'to be forged');
  const copy = structuredClone(message);
  const envelope = copy.parts[1]?.data as Envelope;
  envelope.attempt = 2;
  copy.messageId = `${envelope.handoff_id}:2`;
  change(envelope, copy);
  return copy;
}

async function refusal(message: Message, agent = TRIAGE) {
  const task = await world.deliver(message, agent);
  expect(task.status.state).toBe('TASK_STATE_REJECTED');
  return answerOf(task) as { code: string; final: boolean; fields: { path: string }[] };
}

describe('receiving an offer', () => {
  it('[R-077][R-079][R-107][R-108][R-113] answers with a task of its own that holds the receipt as an artifact', async () => {
    const task = await world.deliver(await heldOffer('CASE-1'));
    expect(task).toMatchObject({
      id: expect.stringMatching(/^task_/),
      status: { state: 'TASK_STATE_COMPLETED' },
    });
    expect(task.status.message).toBeUndefined();
    expect(answerOf(task)).toMatchObject({ accepted: true, case_id: 'CASE-1', epoch: 4 });
    const stored = await world.ledger.getTask('default', TRIAGE, task.id);
    expect(JSON.parse(stored?.task ?? '')).toEqual(task);
    expect(await world.ledger.getTask('default', MALLORY, task.id)).toBeNull();
  });

  it('[R-083][R-086][R-079] gives twenty identical offers at once one decision, one work item and twenty equal answers', async () => {
    const message = await heldOffer('CASE-2');
    const tasks = await Promise.all(Array.from({ length: 20 }, () => world.deliver(message)));
    expect(new Set(tasks.map((task) => JSON.stringify(task))).size).toBe(1);
    const ref = { tenant: 'default', root: TRIAGE, caseId: 'CASE-2' };
    const { decisions, work, audit } = await world.ledger.snapshot(ref);
    expect([decisions.length, work.length]).toEqual([1, 1]);
    expect(audit.filter(({ type }) => type === 'delivery_repeated')).toHaveLength(19);
  });

  it.each<[string, Verdict]>([
    ['acceptance', { verdict: 'accept' }],
    ['rejection', { verdict: 'reject', code: 'records_disagree', reason: 'no' }],
    ['question', { verdict: 'clarify', question: 'which payment?' }],
  ])('[R-086][R-095] audits a delivery once whose late %s meets a decision', async (_, verdict) => {
    const message = await heldOffer('CASE-2');
    const { key } = await world.lastOffer('CASE-2');
    world.handler.current = {
      check: async () => {
        await world.sender.withdraw(key, 'too slow');
        return verdict;
      },
    };
    const audited = async () => {
      const { audit } = await world.ledger.snapshot({ tenant: 'default', root: TRIAGE, caseId: 'CASE-2' });
      return audit.filter(({ type }) => type === 'delivery_repeated').length;
    };
    const late = await world.deliver(message);
    expect(answerOf(late)).toMatchObject({ code: 'withdrawn', final: true });
    expect(await audited()).toBe(1);
    expect(await world.deliver(message)).toEqual(late);
    expect(await audited()).toBe(2);
  });

  it('[R-083] answers a late repetition of a rejected offer with the stored rejection', async () => {
    world.handler.current = { check: () => ({ verdict: 'reject', code: 'records_disagree', reason: 'no' }) };
    const message = await heldOffer('CASE-3');
    const first = await world.deliver(message);
    world.handler.current = {};
    expect(await world.deliver(message)).toEqual(first);
  });

  it('[R-082] refuses the same key with other bytes, whichever comes first, and changes nothing', async () => {
    const message = await heldOffer('CASE-4');
    const other = structuredClone(message);
    (other.parts[1]?.data as Envelope).goal = 'refund everything';
    expect(await refusal(other)).toMatchObject({ code: 'duplicate_conflict', final: false });
    const accepted = await world.deliver(message);
    expect(accepted.status.state).toBe('TASK_STATE_COMPLETED');
    expect(await refusal(other)).toMatchObject({ code: 'duplicate_conflict', final: false });
    expect(await world.deliver(message)).toEqual(accepted);
    expect(world.accepted).toHaveLength(1);
  });

  it('[R-070][R-071][R-026] believes the token, not the body', async () => {
    const message = await heldOffer('CASE-5');
    expect(await refusal(message, MALLORY)).toMatchObject({ code: 'peer_mismatch', final: true });
    const asMallory = await forged('CASE-6', (envelope) => {
      envelope.from_agent = MALLORY;
      (envelope.chain as { hops: string[] }).hops = [MALLORY];
    });
    expect(await refusal(asMallory, MALLORY)).toMatchObject({ code: 'peer_not_allowed' });
    const elsewhere = await forged('CASE-7', (envelope) => {
      envelope.to_agent = MALLORY;
    });
    expect(await refusal(elsewhere)).toMatchObject({ code: 'not_addressee' });
    expect(world.downloads).toEqual([]);
    // What another peer's forgery was answered with is no decision on the true offer.
    expect((await world.deliver(message)).status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('[R-051][R-067][R-071][R-072][R-166] checks owner, epoch, kind and time before it fetches anything', async () => {
    const codes: Record<string, string> = {};
    const tryForged = async (name: string, change: (envelope: Envelope, message: Message) => void) => {
      codes[name] = (await refusal(await forged(name, change))).code;
    };
    const atEpoch = (epoch: number) => (envelope: Envelope, message: Message) => {
      envelope.epoch = epoch;
      envelope.handoff_id = `${envelope.case_id}:${epoch + 1}`;
      message.messageId = `${envelope.handoff_id}:2`;
    };
    await tryForged('stale', atEpoch(2));
    await tryForged('ahead', atEpoch(9));
    await tryForged('unknown', (envelope, message) => {
      envelope.case_id = 'CASE-NONE';
      atEpoch(3)(envelope, message);
    });
    await tryForged('late', (envelope) => {
      envelope.accept_by = '2026-01-01T00:00:00Z';
    });
    await tryForged('chain', (envelope) => {
      envelope.chain = { hops: ['https://other.example', TRIAGE], tasks_left: 5 };
    });
    await tryForged('tasks', (envelope) => {
      envelope.chain = { hops: [TRIAGE], tasks_left: 50 };
    });
    await tryForged('far', (envelope) => {
      envelope.chain = { hops: ['https://a.example', 'https://b.example', TRIAGE], tasks_left: 5 };
    });
    await tryForged('contract', (envelope) => {
      envelope.contract = 'refund-dispute/2';
    });
    await tryForged('skill', (envelope) => {
      envelope.skill = 'publishing';
    });
    await tryForged('wider', (envelope) => {
      envelope.constraints = {
        ...(envelope.constraints as object),
        caps: { refund: { amount: '500.00', currency: 'EUR' } },
      };
    });
    expect(codes).toEqual({
      stale: 'epoch_stale',
      ahead: 'epoch_ahead',
      unknown: 'case_unknown',
      late: 'offer_expired',
      chain: 'chain_mismatch',
      tasks: 'chain_mismatch',
      far: 'chain_limit',
      contract: 'contract_unknown',
      skill: 'skill_unknown',
      wider: 'constraint_invalid',
    });
    expect(world.downloads).toEqual([]);
    expect(await world.ledger.findCases('default', 'CASE-NONE')).toEqual([]);
  });

  it('[R-047][R-050][R-170] rejects what it cannot read, or what is not what was declared', async () => {
    const codes: Record<string, string> = {};
    const tryReference = async (
      name: string,
      change: (reference: Record<string, unknown>, part: Message['parts'][0]) => void,
    ) => {
      const message = await forged(name, (envelope, copy) => {
        change(envelope.references[0] as Record<string, unknown>, copy.parts[2] as Message['parts'][0]);
      });
      const { code, fields } = await refusal(message);
      codes[name] = code;
      expect(fields[0]?.path).toMatch(/^references\.0\./);
    };
    await tryReference('hash', (reference, part) => {
      reference.sha256 = 'b'.repeat(64);
      part.metadata = { ...part.metadata, sha256: 'b'.repeat(64) };
    });
    await tryReference('size', (reference, part) => {
      reference.bytes = 3;
      part.metadata = { ...part.metadata, bytes: 3 };
    });
    await tryReference('signature', (reference, part) => {
      reference.url = String(reference.url).replace(/sig=.{4}/, 'sig=AAAA');
      part.url = String(reference.url);
    });
    await tryReference('type', (reference, part) => {
      reference.media_type = 'application/json';
      part.mediaType = 'application/json';
    });
    await tryReference('early', (reference, part) => {
      const soon = new Date(Date.now() + 60_000).toISOString();
      reference.expires_at = soon;
      part.metadata = { ...part.metadata, expiresAt: soon };
    });
    await tryReference('expired', (reference, part) => {
      reference.expires_at = '2026-01-01T00:00:00Z';
      part.metadata = { ...part.metadata, expiresAt: '2026-01-01T00:00:00Z' };
    });
    expect(codes).toEqual({
      hash: 'evidence_hash_mismatch',
      size: 'evidence_size_mismatch',
      signature: 'evidence_unreadable',
      type: 'evidence_media_type',
      early: 'evidence_expired',
      expired: 'evidence_expired',
    });
  });

  it('[R-101][R-102][R-103] rejects missing evidence and constraints, and what its own records contradict', async () => {
    const empty = await forged('CASE-8', (envelope, message) => {
      envelope.references = [];
      message.parts.splice(2);
    });
    expect((await refusal(empty)).code).toBe('evidence_empty');
    const uncapped = await forged('CASE-9', (envelope) => {
      envelope.constraints = { ...(envelope.constraints as object), caps: {} };
    });
    expect((await refusal(uncapped)).code).toBe('constraint_missing');
    world.handler.current = {
      check: (offer) => {
        const { id } = offer.facts.payment_b as { id: string };
        return id === 'pay_B'
          ? { verdict: 'reject', code: 'records_disagree', reason: 'pay_B is missing here' }
          : { verdict: 'accept' };
      },
    };
    expect((await refusal(await heldOffer('CASE-10'))).code).toBe('records_disagree');
    expect(world.accepted).toEqual([]);
  });

  it('[R-044][R-068][R-069][R-171] stores a rejection where the key can be read, and says so where it cannot', async () => {
    const noEnvelope = await forged('CASE-11', (_envelope, message) => {
      message.parts.splice(1, 1);
    });
    expect(await refusal(noEnvelope)).toMatchObject({ code: 'envelope_missing', final: false });
    const two = await forged('CASE-12', (_envelope, message) => {
      message.parts.push(structuredClone(message.parts[1] as Message['parts'][0]));
    });
    expect(await refusal(two)).toMatchObject({ code: 'envelope_multiple', final: false });
    const future = await forged('CASE-13', (_envelope, message) => {
      (message.parts[1] as Message['parts'][0]).mediaType = 'application/vnd.holdfast.handoff.v3+json';
    });
    expect(await refusal(future)).toMatchObject({ code: 'version_unknown', final: false });
    const wrong = await forged('CASE-14', (envelope) => {
      Object.assign(envelope, { goal: 7, done: 'x', remaining: 3, facts: 'none', open_questions: null });
    });
    const answer = await refusal(wrong);
    expect(answer).toMatchObject({ code: 'schema_invalid', final: true });
    expect(answer.fields).toHaveLength(3);
    expect(await refusal(wrong)).toEqual(answer);
  });

  it('[R-166] decides nothing while an effect is in flight, and refuses when one was started after the offer', async () => {
    const message = await heldOffer('CASE-15');
    const ref = { tenant: 'default', root: TRIAGE, caseId: 'CASE-15' };
    const kind = await world.ledger.getKind('default', 'refund-dispute');
    if (!kind) throw new Error('no kind');
    const operations = { ...kind.policy.operations, [TRIAGE]: ['refund'] };
    await world.ledger.putKind(
      'default',
      { ...kind, policy: { ...kind.policy, operations } },
      { replace: true },
    );
    const effect = { ref, writer: TRIAGE, epoch: 3, key: 'refund-1' };
    await world.ledger.startEffect({
      ...effect,
      operation: 'refund',
      amount: { amount: '1.00', currency: 'EUR' },
    });
    await expect(world.deliver(message)).rejects.toMatchObject({ code: 'effect_in_flight' });
    expect((await world.lastOffer('CASE-15')).state).toBe('offered');
    await world.ledger.settleEffect({ ...effect, state: 'done', outcome: 're_1' });
    expect(await refusal(message)).toMatchObject({ code: 'case_changed', final: true });
  });

  it('decides nothing when a check fails, or uses a code that is no rejection', async () => {
    const message = await heldOffer('CASE-16');
    world.handler.current = {
      check: () => {
        throw new Error('the records are down');
      },
    };
    await expect(world.deliver(message)).rejects.toThrow('the records are down');
    world.handler.current = { check: () => ({ verdict: 'reject', code: 'epoch', reason: 'made up' }) };
    await expect(world.deliver(message)).rejects.toMatchObject({ code: 'internal' });
    world.handler.current = {};
    expect((await world.deliver(message)).status.state).toBe('TASK_STATE_COMPLETED');
    expect(await world.ledger.getCase({ tenant: 'default', root: TRIAGE, caseId: 'CASE-16' })).toMatchObject({
      owner: BILLING,
    });
  });

  it('accepts on the word accept alone, whatever else a check returns', async () => {
    const message = await heldOffer('CASE-17');
    const garbage: unknown[] = [
      undefined,
      null,
      true,
      'accept',
      {},
      { verdict: 'accepted' },
      { verdict: 'Reject', code: 'records_disagree', reason: 'no' },
      { verdict: 'reject' },
      { verdict: 'reject', code: 'constructor', reason: 'no' },
      { verdict: 'reject', code: 'busy', reason: 'no' },
      { verdict: 'reject', code: 'records_disagree', reason: 7 },
      { verdict: 'reject', code: 'records_disagree', reason: 'no', fields: 'facts' },
      { verdict: 'reject', code: 'records_disagree', reason: 'no', fields: [null] },
      { verdict: 'reject', code: 'records_disagree', reason: 'no', hint: {} },
    ];
    for (const verdict of garbage) {
      world.handler.current = { check: () => verdict as Verdict };
      await expect(world.deliver(message), JSON.stringify(verdict)).rejects.toMatchObject({
        code: 'internal',
      });
    }
    expect((await world.lastOffer('CASE-17')).state).toBe('offered');
    world.handler.current = { check: () => ({ verdict: 'accept' }) };
    expect((await world.deliver(message)).status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('[R-106] sends a rejection that the sender can read, whatever its words are', async () => {
    const words = ['', '\u0000', '\u{1f600}'.repeat(1500), `${'x'.repeat(499)}\u{1f600}`];
    for (const [index, word] of words.entries()) {
      const field = { path: word, problem: word };
      world.handler.current = {
        check: () => ({
          verdict: 'reject',
          code: 'records_disagree',
          reason: word,
          fields: [field, field, field, field],
          hint: word,
        }),
      };
      const ref = await world.openCase(`CASE-WORD-${index}`, 3);
      expect(await world.sender.handOff(world.input(ref))).toMatchObject({
        state: 'rejected',
        code: 'records_disagree',
      });
      const { key } = await world.lastOffer(ref.caseId);
      expect(await world.sender.resend(key)).toMatchObject({ state: 'rejected' });
    }
  });

  it('lets no check that never answers hold an offer past its accept_by', async () => {
    world.handler.current = { check: () => new Promise(() => undefined) };
    const ref = await world.openCase('CASE-18', 3);
    const first = world.sender.handOff(world.input(ref, { acceptWithinMs: 300 }));
    await expect.poll(() => world.downloads.length).toBe(1);
    const again = world.deliver(JSON.parse(world.sent[0] ?? ''));
    expect(await first).toMatchObject({ state: 'rejected', code: 'offer_expired' });
    expect(answerOf(await again)).toMatchObject({ code: 'offer_expired', final: true });
    expect(await world.ledger.getCase(ref)).toMatchObject({ owner: TRIAGE, epoch: 3 });
  });
});
