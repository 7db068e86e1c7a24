import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { accept, reject } from '../../src/index.js';
import {
  type Answer,
  type Binding,
  type CallOptions,
  CONTROL,
  controlIn,
  controlOf,
  decisionIn,
  digestOf,
  errorInfoIn,
  type Json,
  messageOf,
  type PlainSender,
  startPlainSender,
  taskIn,
  verifyReceipt,
} from './plain-sender.js';
import { type Receiver, startReceiver } from './receiver.js';

const page = readFileSync('docs/wire.md', 'utf8');
const example: Json = JSON.parse(/```json\n(\{\n {2}"version": 2,\n.*?)```/s.exec(page)?.[1] ?? '{}');

/** A gate that a check waits at. */
function gate(): {
  readonly reached: Promise<void>;
  readonly opened: Promise<void>;
  reach(): void;
  open(): void;
} {
  let [reach, open] = [() => {}, () => {}];
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { reached, opened, reach: () => reach(), open: () => open() };
}

describe.each(['JSON-RPC', 'HTTP+JSON'] as const)(
  'control messages of a peer that has only the page, over %s',
  (binding) => {
    let sender: PlainSender;
    let other: PlainSender;
    let mute: PlainSender;
    let stranger: PlainSender;
    let receiver: Receiver;
    let envelope: Json;
    let opened = 0;
    let judge: () => Promise<ReturnType<typeof accept>> | ReturnType<typeof accept>;

    beforeAll(async () => {
      [sender, other, mute, stranger] = await Promise.all([
        startPlainSender(),
        startPlainSender(),
        startPlainSender(),
        startPlainSender(),
      ]);
      receiver = await startReceiver([sender, other, { ...mute, contracts: [] }], {
        handlers: { 'refund-dispute/1': { check: () => judge() } },
      });
    });

    afterAll(async () => {
      await receiver.close();
      await Promise.all([sender, other, mute, stranger].map((one) => one.close()));
    });

    beforeEach(async () => {
      opened += 1;
      judge = () => accept();
      const caseId = `CASE-${opened}`;
      await receiver.node.openCase({
        caseId,
        kind: 'refund',
        owner: sender.url,
        epoch: 3,
        importedFrom: 'crm',
      });
      envelope = {
        ...example,
        root: receiver.url,
        case_id: caseId,
        handoff_id: `${caseId}:4`,
        from_agent: sender.url,
        to_agent: receiver.url,
        references: [sender.host(Buffer.from('charged twice'), 'transcript.txt', 'text/plain')],
        accept_by: new Date(Date.now() + 3_600_000).toISOString(),
        chain: { ...example.chain, hops: [sender.url] },
      };
    });

    const send = (message: string, options?: CallOptions, from = sender, over: Binding = binding) =>
      from.send(receiver.url, over, message, options);
    const control = (document: Json, from = sender, more: Json = {}) =>
      send(controlOf(document, more), {}, from);
    const about = (attempt = 1): Json => ({ root: receiver.url, handoff_id: envelope.handoff_id, attempt });
    const query = async (from = sender, attempt = 1) =>
      controlIn(await control({ verb: 'handoff.query', ...about(attempt) }, from));
    const withdraw = async (from = sender, attempt = 1) =>
      controlIn(await control({ verb: 'handoff.withdraw', ...about(attempt) }, from));
    const queryCase = async (from = sender, caseId = envelope.case_id) =>
      controlIn(await control({ verb: 'handoff.query', root: receiver.url, case_id: caseId }, from));
    const ref = () => receiver.node.caseRef(envelope.case_id);
    const owner = async () => receiver.node.ledger.getCase(ref());
    const snapshot = () => receiver.node.ledger.snapshot(ref());
    const offer = (over: Json = {}) => send(messageOf({ ...envelope, ...over }));

    function expectRefused(answer: Answer, code: string, field?: string): void {
      expect(answer.body, JSON.stringify(answer.body)).toHaveProperty('error');
      expect(errorInfoIn(answer)).toMatchObject({ domain: 'holdfast', reason: code.toUpperCase() });
      if (binding === 'HTTP+JSON') expect(answer.status).toBe(400);
      else expect([answer.status, answer.body.error.code]).toEqual([200, -32602]);
      const details = answer.body.error.data ?? answer.body.error.details;
      const fields = details.flatMap((one: Json) => one.fieldViolations ?? []).map((one: Json) => one.field);
      if (field !== undefined) expect(fields).toContain(field);
      expect(fields.length).toBeLessThanOrEqual(3);
    }

    it('[R-088][R-090] say that nothing is stored, and leave nothing behind', async () => {
      const before = await snapshot();
      expect(await query()).toEqual({ verb: 'handoff.query', ...about(), state: 'none' });
      expect(await queryCase()).toEqual({
        verb: 'handoff.query',
        root: receiver.url,
        case_id: envelope.case_id,
        decisions: [],
        more: false,
      });
      expect(await snapshot()).toEqual(before);
      expect(taskIn(await offer()).status.state).toBe('TASK_STATE_COMPLETED');
    });

    it('[R-088][R-090] find the acceptance whose answer was lost, with the receipt that proves it', async () => {
      const task = taskIn(await offer());
      const { decision, ...found } = await query();
      expect(found).toEqual({ verb: 'handoff.query', ...about(), state: 'decided' });
      expect(decision).toEqual({
        handoff_id: envelope.handoff_id,
        attempt: 1,
        verdict: 'accepted',
        decided_at: expect.stringMatching(/Z$/),
        digest: digestOf(envelope),
        task_id: task.id,
        answer: task.artifacts[0].parts[0].data,
      });
      await verifyReceipt(decision.answer, envelope, receiver.thumbprint);
      expect((await queryCase()).decisions).toEqual([decision]);
      expect(await query()).toEqual({ ...found, decision });
    });

    it('[R-090] find a stored rejection, as it was answered', async () => {
      judge = () => reject('records_disagree', 'No such payment.');
      const { mediaType: _, ...part } = decisionIn(await offer());
      const { decision } = await query();
      expect(decision).toMatchObject({ verdict: 'rejected', digest: digestOf(envelope), answer: part });
      expect(await withdraw()).toMatchObject({ verb: 'handoff.withdraw', state: 'decided', decision });
      expect((await query(sender, 2)).state).toBe('none');
    });

    it('[R-095][R-099] close an attempt that never arrived: its late arrival is refused, the next attempt is not', async () => {
      const closed = await withdraw();
      expect(closed).toEqual({
        verb: 'handoff.withdraw',
        ...about(),
        state: 'decided',
        decision: {
          handoff_id: envelope.handoff_id,
          attempt: 1,
          verdict: 'withdrawn',
          decided_at: expect.stringMatching(/Z$/),
          answer: expect.objectContaining({ accepted: false, code: 'withdrawn', final: true, attempt: 1 }),
        },
      });
      const length = (await snapshot()).audit.length;
      expect(await withdraw()).toEqual(closed);
      expect((await snapshot()).audit).toHaveLength(length);
      expect((await query()).decision).toEqual(closed.decision);
      for (const goal of [envelope.goal, 'Refund both charges']) {
        const { mediaType: _, ...part } = decisionIn(await offer({ goal }));
        expect(part).toEqual(closed.decision.answer);
      }
      expect(await owner()).toMatchObject({ owner: sender.url, epoch: 3 });
      expect(taskIn(await offer({ attempt: 2 })).status.state).toBe('TASK_STATE_COMPLETED');
      expect((await queryCase()).decisions).toMatchObject([
        { attempt: 2, verdict: 'accepted' },
        { attempt: 1, verdict: 'withdrawn' },
      ]);
    });

    it('[R-099] change nothing where the acceptance came first', async () => {
      const task = taskIn(await offer());
      const before = await snapshot();
      const { decision } = await withdraw();
      expect(decision).toMatchObject({ verdict: 'accepted', answer: task.artifacts[0].parts[0].data });
      expect(await snapshot()).toEqual(before);
      expect(await owner()).toMatchObject({ owner: receiver.url, epoch: 4 });
    });

    it('[R-084][R-099] tell of an offer that is being judged, and close it before its verdict', async () => {
      const waiting = gate();
      judge = async () => {
        waiting.reach();
        await waiting.opened;
        return accept();
      };
      const pending = offer();
      await waiting.reached;
      expect(await query()).toEqual({ verb: 'handoff.query', ...about(), state: 'deciding' });
      expect(await query(other)).toMatchObject({ state: 'none' });
      expect(await queryCase()).toMatchObject({ decisions: [] });
      const { decision } = await withdraw();
      waiting.open();
      const { mediaType: _, ...part } = decisionIn(await pending);
      expect(part).toEqual(decision.answer);
      expect(await owner()).toMatchObject({ owner: sender.url, epoch: 3 });
      expect((await snapshot()).work).toEqual([]);
      expect((await query()).decision).toEqual(decision);
    });

    it('[R-087] show and close nothing of another peer, and do not tell it from what does not exist', async () => {
      await offer();
      const unknown = (document: Json) => JSON.stringify(document).replaceAll(envelope.case_id, 'CASE-0');
      const foreign = JSON.stringify([await query(other), await queryCase(other)]);
      envelope = { ...envelope, case_id: 'CASE-0', handoff_id: 'CASE-0:4' };
      const missing = JSON.stringify([await query(other), await queryCase(other)]);
      expect(missing).toContain('CASE-0');
      envelope = { ...envelope, case_id: `CASE-${opened}`, handoff_id: `CASE-${opened}:4` };
      expect(unknown(JSON.parse(foreign))).toBe(missing);
    });

    it('[R-087] close only attempts of whoever sends them', async () => {
      expect((await withdraw(other)).decision).toMatchObject({ verdict: 'withdrawn' });
      expect(await query()).toMatchObject({ state: 'none' });
      expect(taskIn(await offer()).status.state).toBe('TASK_STATE_COMPLETED');
    });

    it('[R-070] are refused from who may hand nothing over, and from who is nobody', async () => {
      const before = await receiver.node.ledger.listAuditedCases('default');
      for (const verb of ['handoff.query', 'handoff.withdraw']) {
        expectRefused(await control({ verb, ...about() }, mute), 'peer_not_allowed');
        expect((await control({ verb, ...about() }, stranger)).status).toBe(401);
      }
      const ofCase = { verb: 'handoff.query', root: receiver.url, case_id: envelope.case_id };
      expectRefused(await control(ofCase, mute), 'peer_not_allowed');
      expect(await receiver.node.ledger.listAuditedCases('default')).toEqual(before);
      expect((await snapshot()).decisions).toEqual([]);
    });

    const whole = { verb: 'handoff.query', root: 'https://a.example', handoff_id: 'CASE-1:4', attempt: 1 };
    const { attempt: _attempt, ...noAttempt } = whole;
    const { root: _root, ...noRoot } = whole;
    const ofCase = { verb: 'handoff.query', root: 'https://a.example', case_id: 'CASE-1' };
    const bad: readonly (readonly [what: string, document: Json, code: string, field?: string])[] = [
      ['no object', [], 'control_invalid', 'message.parts.0.data'],
      ['null', null, 'control_invalid', 'message.parts.0.data'],
      ['a text', 'handoff.query', 'control_invalid', 'message.parts.0.data'],
      ['no verb', { ...whole, verb: undefined }, 'control_invalid', 'verb'],
      ['a verb that is no text', { ...whole, verb: 7 }, 'control_invalid', 'verb'],
      ['an unknown verb', { ...whole, verb: 'handoff.accept' }, 'verb_unknown'],
      ['a verb of every object', { ...whole, verb: 'constructor' }, 'verb_unknown'],
      ['a verb in capitals', { ...whole, verb: 'HANDOFF.QUERY' }, 'verb_unknown'],
      ['an unknown field', { ...whole, tenant: 'other' }, 'control_invalid', 'tenant'],
      ['a sender', { ...whole, sender: 'https://victim.example' }, 'control_invalid', 'sender'],
      ['a name of every object', { ...whole, toString: 1 }, 'control_invalid', 'toString'],
      ['no root', noRoot, 'control_invalid', 'root'],
      ['a root in capitals', { ...whole, root: 'https://A.example' }, 'control_invalid', 'root'],
      ['a root with credentials', { ...whole, root: 'https://a:b@a.example' }, 'control_invalid', 'root'],
      [
        'a root that is too long',
        { ...whole, root: `https://a.example/${'x'.repeat(500)}` },
        'control_invalid',
        'root',
      ],
      ['a root that is null', { ...whole, root: null }, 'control_invalid', 'root'],
      ['a handoff id without epoch', { ...whole, handoff_id: 'CASE-1' }, 'control_invalid', 'handoff_id'],
      [
        'a handoff id that is too long',
        { ...whole, handoff_id: `${'C'.repeat(129)}:4` },
        'control_invalid',
        'handoff_id',
      ],
      ['a handoff id with a path', { ...whole, handoff_id: '../CASE-1:4' }, 'control_invalid', 'handoff_id'],
      ['a list of handoff ids', { ...whole, handoff_id: ['CASE-1:4'] }, 'control_invalid', 'handoff_id'],
      ['no attempt', noAttempt, 'control_invalid', 'attempt'],
      ['attempt 0', { ...whole, attempt: 0 }, 'control_invalid', 'attempt'],
      ['half an attempt', { ...whole, attempt: 1.5 }, 'control_invalid', 'attempt'],
      ['a text as attempt', { ...whole, attempt: '1' }, 'control_invalid', 'attempt'],
      ['an attempt that no ledger holds', { ...whole, attempt: 2 ** 31 }, 'control_invalid', 'attempt'],
      ['a case and a handoff', { ...whole, case_id: 'CASE-1' }, 'control_invalid', 'handoff_id'],
      ['a case id with a colon', { ...ofCase, case_id: 'CASE-1:4' }, 'control_invalid', 'case_id'],
      ['a case id that is too long', { ...ofCase, case_id: 'C'.repeat(129) }, 'control_invalid', 'case_id'],
      ['a case to withdraw', { ...ofCase, verb: 'handoff.withdraw' }, 'control_invalid', 'handoff_id'],
      ['nothing but a verb', { verb: 'handoff.withdraw' }, 'control_invalid', 'root'],
    ];

    it.each(bad)('[R-069] are refused with a stable code: %s', async (_what, document, code, field) => {
      const before = await receiver.node.ledger.listAuditedCases('default');
      expectRefused(await control(document), code, field);
      expect(await receiver.node.ledger.listAuditedCases('default')).toEqual(before);
    });

    it('[R-069] are refused in any other form of message', async () => {
      const part = { mediaType: CONTROL, data: whole };
      const forms: readonly (readonly [Json, string])[] = [
        [{ parts: [part, part] }, 'message.parts'],
        [{ parts: [part, { text: 'please' }] }, 'message.parts'],
        [{ parts: [{ text: 'please' }, part] }, 'message.parts'],
        [{ parts: [{ mediaType: CONTROL, text: JSON.stringify(whole) }] }, 'message.parts.0.data'],
        [{ parts: [{ mediaType: CONTROL, raw: 'e30=' }] }, 'message.parts.0.data'],
        [{ parts: [{ mediaType: CONTROL, url: 'https://a.example/control' }] }, 'message.parts.0.data'],
        [{ parts: [{ ...part, mediaType: CONTROL.replace('v1', 'v2') }] }, 'message.parts.0.mediaType'],
      ];
      for (const [more, field] of forms)
        expectRefused(await control(whole, sender, more), 'control_invalid', field);
      expectRefused(
        await control(whole, sender, { contextId: 'mine' }),
        'message_invalid',
        'message.contextId',
      );
      expectRefused(await control(whole, sender, { role: 'ROLE_AGENT' }), 'message_invalid', 'message.role');
      const byTask = await control(whole, sender, { taskId: 'no-such-task' });
      expect(errorInfoIn(byTask).reason).toBe('TASK_NOT_FOUND');
      const media = { parts: [{ ...part, mediaType: `${CONTROL.toUpperCase()}; charset=utf-8` }] };
      expect(controlIn(await control(whole, sender, media))).toEqual({ ...whole, state: 'none' });
    });

    it('are answered alike in a stream, as its one event', async () => {
      await withdraw();
      const url = `${receiver.url}/a2a${binding === 'JSON-RPC' ? '' : '/rest/message:stream'}`;
      const params = `{"message":${controlOf({ verb: 'handoff.query', ...about() })}}`;
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'a2a-version': '1.0',
          authorization: `Bearer ${sender.token(receiver.url)}`,
        },
        body:
          binding === 'JSON-RPC'
            ? `{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":${params}}`
            : params,
      });
      const events = [...(await response.text()).matchAll(/^data: (.*)$/gm)].map(([, data]) =>
        JSON.parse(data ?? ''),
      );
      expect(events).toHaveLength(1);
      expect(controlIn({ status: 200, headers: response.headers, body: events[0] })).toEqual(await query());
    });

    it('[R-099] are the only way to close an offer: its task is there once it is decided, and is not canceled', async () => {
      const { id } = taskIn(await offer());
      const at = binding === 'JSON-RPC' ? '/a2a' : `/a2a/rest/tasks/${id}:cancel`;
      const response = await fetch(`${receiver.url}${at}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'a2a-version': '1.0',
          authorization: `Bearer ${sender.token(receiver.url)}`,
        },
        body: JSON.stringify(
          binding === 'JSON-RPC' ? { jsonrpc: '2.0', id: 1, method: 'CancelTask', params: { id } } : {},
        ),
      });
      expect(await response.text()).toContain('TASK_NOT_CANCELABLE');
      expect(await owner()).toMatchObject({ owner: receiver.url, epoch: 4 });
    });
  },
);
