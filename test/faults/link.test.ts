import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compareWithLedger, replay, verifyChain } from '../../src/audit/index.js';
import type { CaseRef } from '../../src/index.js';
import { seeded } from '../seeded.js';
import { type Linked, startLinked } from './linked.js';
import { type Fault, randomly } from './proxy.js';

let world: Linked;

beforeEach(async () => {
  world = await startLinked();
});

afterEach(() => world.close());

/** The body of a request or of an answer as it crossed. */
function textOf(bytes: Buffer): string {
  return bytes.toString('utf8', bytes.indexOf('\r\n\r\n') + 4);
}

// biome-ignore lint/suspicious/noExplicitAny: what crossed is looked at field by field
function bodyOf(bytes: Buffer): any {
  return JSON.parse(textOf(bytes));
}

function withBody(request: Buffer, body: string): Buffer {
  const head = request.toString('latin1', 0, request.indexOf('\r\n\r\n'));
  const length = Buffer.byteLength(body);
  return Buffer.from(`${head.replace(/^content-length:.*$/im, `content-length: ${length}`)}\r\n\r\n${body}`);
}

// biome-ignore lint/suspicious/noExplicitAny: what crossed is looked at field by field
function answerIn(reply: Buffer): any {
  const body = bodyOf(reply);
  return body.result?.task?.artifacts?.[0]?.parts[0].data ?? body.error;
}

const envelopeIn = (message: { parts: { data?: unknown }[] }) => message.parts.find(({ data }) => data)?.data;

/** The first message is what the fault strikes; what the sender does afterwards gets through. */
function strikeFirst(fault: { request?: Fault; reply?: Fault }): void {
  let struck = false;
  world.link.schedule = ({ method }) => {
    if (method !== 'POST' || struck) return {};
    struck = true;
    return fault;
  };
}

/** Accepted once, worked on once, and told by an audit that replays to it. */
async function expectOneAcceptance(ref: CaseRef): Promise<void> {
  await expect
    .poll(async () => (await world.snapshot(ref)).work.map(({ state }) => state), { timeout: 20_000 })
    .toEqual(['done']);
  const snapshot = await world.snapshot(ref);
  expect(snapshot.case).toMatchObject({ owner: world.billing.url, epoch: 2 });
  expect(snapshot.decisions.filter(({ verdict }) => verdict === 'accepted')).toHaveLength(1);
  expect(world.effects.get(`${ref.caseId} refund-pay_B`)).toBe(1);
  expect(verifyChain(snapshot.audit)).toMatchObject({ ok: true });
  expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
}

/** Places in a text, the same in every run. */
function placesIn(text: string, count: number): number[] {
  const next = seeded(text.length);
  return Array.from({ length: count }, () => 1 + Math.floor(next() * (text.length - 2)));
}

describe('a link that fails', () => {
  it('[R-065][R-081] loses the request: the identical bytes are sent again', async () => {
    const ref = await world.open('CASE-24');
    strikeFirst({ request: { do: 'drop' } });
    expect(await world.handOff(ref)).toMatchObject({ state: 'accepted' });
    const [lost, resent] = world.sent();
    expect(lost?.replies).toEqual([]);
    expect(bodyOf(resent?.request as Buffer).params).toEqual(bodyOf(lost?.request as Buffer).params);
    await expectOneAcceptance(ref);
  });

  it('[R-065][R-083] loses the reply: the acceptance stands, and every retry gets the same receipt', async () => {
    const ref = await world.open('CASE-25');
    strikeFirst({ reply: { do: 'drop' } });
    const result = await world.handOff(ref);
    expect(result).toMatchObject({ state: 'accepted', epoch: 2 });
    const [first] = world.sent();
    const receipt = answerIn(first?.replies[0] as Buffer);
    expect(receipt).toMatchObject({ accepted: true, epoch: 2 });
    expect(answerIn(await world.link.replay(first?.request as Buffer))).toEqual(receipt);
    expect(result.offer.receipt).toBe(receipt.receipt);
    await expectOneAcceptance(ref);
  });

  it('[R-065] answers nothing at all, and later gives the old answer: nothing is concluded from either', async () => {
    const ref = await world.open('CASE-25b');
    let release = () => {};
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    strikeFirst({ reply: { do: 'hold', until } });
    const result = world.handOff(ref);
    await expect.poll(() => world.sent()[0]?.replies.length).toBe(1);
    expect((await world.snapshot(ref)).case).toMatchObject({ epoch: 2 });
    release();
    expect(await result).toMatchObject({ state: 'accepted' });
    await expectOneAcceptance(ref);
  });

  it.each([2, 10, 50])(
    '[R-082][R-086] delivers the request %i times at once: one acceptance',
    async (times) => {
      const ref = await world.open('CASE-26');
      strikeFirst({ request: { do: 'dup', times } });
      expect(await world.handOff(ref)).toMatchObject({ state: 'accepted' });
      const answers = world.sent()[0]?.replies.map(answerIn) ?? [];
      expect(answers).toHaveLength(times);
      const [receipt] = answers;
      expect(receipt).toMatchObject({ accepted: true });
      for (const answer of answers) expect(answer).toEqual(receipt);
      await expectOneAcceptance(ref);
    },
  );

  it('[R-082] brings other bytes under the same id: a conflict, and nothing is changed', async () => {
    const ref = await world.open('CASE-27');
    expect(await world.handOff(ref)).toMatchObject({ state: 'accepted' });
    await expectOneAcceptance(ref);
    const before = await world.snapshot(ref);
    const [{ request } = { request: Buffer.alloc(0) }] = world.sent();
    const changed = bodyOf(request);
    // biome-ignore lint/suspicious/noExplicitAny: the envelope is changed as an attacker would
    (envelopeIn(changed.params.message) as any).goal = 'refund everything';
    const answer = answerIn(await world.link.replay(withBody(request, JSON.stringify(changed))));
    expect(answer).toMatchObject({ accepted: false, code: 'duplicate_conflict', final: false });
    const after = await world.snapshot(ref);
    expect({ ...after, audit: [] }).toEqual({ ...before, audit: [] });
    expect(after.audit.slice(before.audit.length).map(({ type }) => type)).toEqual(['delivery_conflict']);
  });

  it('reorders: an attempt that was taken back arrives after its successor, and is refused', async () => {
    const ref = await world.open('CASE-28');
    let release = () => {};
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    strikeFirst({ request: { do: 'hold', until } });
    const first = world.handOff(ref);
    await expect.poll(() => world.sent().length).toBe(1);
    const [open] = await world.triage.ledger.listOffers('default', { caseId: ref.caseId, open: true });
    await world.triage.voidOffer(open?.key as never, 'no answer');
    expect(await world.handOff(ref)).toMatchObject({ state: 'accepted' });
    release();
    expect(await first).toMatchObject({ state: 'withdrawn' });
    await expectOneAcceptance(ref);
  });

  it('[R-075] brings messages of an old epoch after the case has moved on and back: nothing is changed', async () => {
    const ref = await world.open('CASE-29');
    expect(await world.handOff(ref)).toMatchObject({ state: 'accepted' });
    await expectOneAcceptance(ref);
    expect(await world.handOff(ref, world.billing)).toMatchObject({ state: 'accepted', epoch: 3 });
    const before = await world.snapshot(ref);
    const [{ request } = { request: Buffer.alloc(0) }] = world.sent();
    const asItWas = answerIn(await world.link.replay(request));
    expect(asItWas).toMatchObject({ accepted: true, epoch: 2 });
    const forged = bodyOf(request);
    // biome-ignore lint/suspicious/noExplicitAny: the envelope is changed as an attacker would
    (envelopeIn(forged.params.message) as any).attempt = 9;
    forged.params.message.messageId = `${ref.caseId}:2:9`;
    const refused = answerIn(await world.link.replay(withBody(request, JSON.stringify(forged))));
    expect(refused).toMatchObject({ accepted: false, code: 'epoch_stale' });
    const after = await world.snapshot(ref);
    expect(after.case).toEqual(before.case);
    expect(after.work).toEqual(before.work);
    expect(after.effects).toEqual(before.effects);
    expect(after.audit.slice(before.audit.length).map(({ type }) => type)).toEqual([
      'delivery_repeated',
      'handoff_rejected',
    ]);
    expect(world.effects.get(`${ref.caseId} refund-pay_B`)).toBe(1);
  });

  it('[R-081] breaks off in the middle, or brings a prefix as if it were whole: nothing is decided', async () => {
    const ref = await world.open('CASE-30');
    world.link.schedule = ({ method }) => (method === 'POST' ? { request: { do: 'cut', bytes: 700 } } : {});
    const open = await world.handOff(ref);
    expect(open.state).toBe('open');
    const { request } = world.sent()[0] as { request: Buffer };
    for (const at of placesIn(textOf(request), 40)) {
      const answer = bodyOf(await world.link.replay(withBody(request, textOf(request).slice(0, at))));
      expect(answer, `the first ${at} characters`).toHaveProperty('error');
    }
    expect((await world.snapshot(ref)).decisions).toEqual([]);
    world.link.schedule = () => ({});
    expect(await world.triage.resend(open.offer.key)).toMatchObject({ state: 'accepted' });
    await expectOneAcceptance(ref);
  });

  it('changes a byte: what was not offered is never accepted', async () => {
    const ref = await world.open('CASE-31');
    world.link.schedule = ({ method }) => (method === 'POST' ? { request: { do: 'half_open' } } : {});
    const offering = world.handOff(ref);
    await expect.poll(() => world.sent().length).toBe(1);
    const { request } = world.sent()[0] as { request: Buffer };
    const text = textOf(request);
    // What surrounds the envelope is for people and for generic clients; the digest, and so the offer, is the envelope.
    const begin = text.indexOf('"data":{') + 8;
    const end = text.indexOf('},"mediaType"', begin);
    for (const place of placesIn(text.slice(begin, end), 60)) {
      const at = begin + place;
      const changed = `${text.slice(0, at)}${text[at] === 'x' ? 'y' : 'x'}${text.slice(at + 1)}`;
      const answer = answerIn(await world.link.replay(withBody(request, changed)));
      expect(answer, changed).not.toHaveProperty('accepted', true);
    }
    expect((await world.snapshot(ref)).case).toMatchObject({ owner: world.triage.url, epoch: 1 });
    const [open] = await world.triage.ledger.listOffers('default', { caseId: ref.caseId, open: true });
    if (open) await world.triage.voidOffer(open.key, 'no answer');
    world.link.schedule = () => ({});
    world.link.breakAll();
    expect((await offering).state).toMatch(/rejected|withdrawn/);
    expect(await world.handOff(ref)).toMatchObject({ state: 'accepted' });
    await expectOneAcceptance(ref);
  });

  it.each([1, 2, 3])('fails in every way at random (seed %i): each case is accepted once', async (seed) => {
    const faults: Fault[] = [
      { do: 'drop' },
      { do: 'delay', ms: 20 },
      { do: 'dup', times: 3 },
      { do: 'cut', bytes: 300 },
      { do: 'corrupt', offset: 400 },
      { do: 'throttle', bytesPerSecond: 100_000 },
    ];
    const refs = await Promise.all([1, 2, 3, 4].map((n) => world.open(`CASE-S${seed}-${n}`)));
    const strike = randomly(seeded(seed), 0.4, faults);
    world.link.schedule = (exchange, index) => (exchange.method === 'POST' ? strike(exchange, index) : {});
    const results = await Promise.allSettled(refs.map((ref) => world.handOff(ref)));
    world.link.schedule = () => ({});
    for (const [i, ref] of refs.entries()) {
      const result = results[i];
      const offer = result?.status === 'fulfilled' ? result.value.offer : null;
      if (offer) await world.triage.resend(offer.key);
      if ((await world.snapshot(ref)).case?.epoch === 1) await world.handOff(ref);
      await expectOneAcceptance(ref);
    }
  });
});
