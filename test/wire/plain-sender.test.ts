import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Answer,
  type Binding,
  type CallOptions,
  decisionIn,
  digestOf,
  ENVELOPE,
  errorInfoIn,
  type Json,
  messageOf,
  type PlainSender,
  RECEIPT,
  REJECTION,
  startPlainSender,
  taskIn,
  verifyReceipt,
} from './plain-sender.js';
import { type Receiver, startReceiver } from './receiver.js';

const ajv = new Ajv2020({ strict: true });
const conforms = (schema: string) =>
  ajv.compile(JSON.parse(readFileSync(`schemas/${schema}.schema.json`, 'utf8')));
const isEnvelope = conforms('envelope-v2');
const isReceipt = conforms('receipt-v1');
const isRejection = conforms('rejection-v1');

const page = readFileSync('docs/wire.md', 'utf8');
const [, exampleText, exampleDigest] =
  /```json\n(\{\n {2}"version": 2,\n.*?)```\s*Its digest is `([0-9a-f]{64})`/s.exec(page) ?? [];
const example: Json = JSON.parse(exampleText ?? '{}');

it("[R-041] the page's envelope fits its schema, and its digest is the page's", () => {
  expect(isEnvelope(example), JSON.stringify(isEnvelope.errors)).toBe(true);
  expect(digestOf(example)).toBe(exampleDigest);
});

describe.each([
  ['JSON-RPC', 'EdDSA'],
  ['HTTP+JSON', 'ES256'],
] as const)('a sender made from the page alone, over %s with %s', (binding, alg) => {
  let sender: PlainSender;
  let other: PlainSender;
  let stranger: PlainSender;
  let receiver: Receiver;
  let envelope: Json;
  let opened = 0;

  beforeAll(async () => {
    [sender, other, stranger] = await Promise.all([
      startPlainSender(alg),
      startPlainSender(),
      startPlainSender(),
    ]);
    receiver = await startReceiver([sender, other]);
  });

  afterAll(async () => {
    await receiver.close();
    await Promise.all([sender.close(), other.close(), stranger.close()]);
  });

  beforeEach(async () => {
    opened += 1;
    const caseId = `CASE-${opened}`;
    const from = { owner: sender.url, epoch: 3, importedFrom: 'crm' };
    await receiver.node.openCase({ caseId, kind: 'refund', ...from });
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
    sender.fetchedBy.length = 0;
  });

  const send = (message: string, options?: CallOptions, over: Binding = binding) =>
    sender.send(receiver.url, over, message, options);
  const owner = async () => receiver.node.ledger.getCase(receiver.node.caseRef(envelope.case_id));

  async function expectAccepted(answer: Answer, offered: Json = envelope): Promise<Json> {
    expect(taskIn(answer).status?.state, JSON.stringify(answer.body)).toBe('TASK_STATE_COMPLETED');
    const { mediaType, ...part } = decisionIn(answer);
    expect(mediaType).toBe(RECEIPT);
    expect(isReceipt(part), JSON.stringify(isReceipt.errors)).toBe(true);
    const { handoff_id, attempt } = offered;
    expect(part).toMatchObject({ accepted: true, root: receiver.url, handoff_id, attempt, epoch: 4 });
    return verifyReceipt(part, offered, receiver.thumbprint);
  }

  function expectRejected(answer: Answer): Json {
    expect(taskIn(answer).status?.state, JSON.stringify(answer.body)).toBe('TASK_STATE_REJECTED');
    const { mediaType, ...part } = decisionIn(answer);
    expect(mediaType).toBe(REJECTION);
    expect(isRejection(part), JSON.stringify(isRejection.errors)).toBe(true);
    return part;
  }

  it('finds what it needs on the card', async () => {
    const card: Json = await (await fetch(`${receiver.url}/.well-known/agent-card.json`)).json();
    expect(card.capabilities.extensions).toMatchObject([{ uri: 'urn:holdfast:handoff:v2' }]);
    expect(card.skills).toMatchObject([{ id: envelope.skill, inputModes: [ENVELOPE] }]);
    const paths = { 'JSON-RPC': '/a2a', 'HTTP+JSON': '/a2a/rest' };
    expect(card.supportedInterfaces).toContainEqual(
      expect.objectContaining({ url: `${receiver.url}${paths[binding]}` }),
    );
  });

  it('[R-042][R-092][R-107][R-108][R-113] hands a case over and gets a receipt that verifies', async () => {
    expect(isEnvelope(envelope), JSON.stringify(isEnvelope.errors)).toBe(true);
    const answer = await send(messageOf(envelope));
    expect(answer.status).toBe(200);
    const receipt = await expectAccepted(answer);
    expect(receipt).toMatchObject({ iat: expect.any(Number), jti: expect.any(String) });
    const part = decisionIn(answer);
    const judge = (changedPart: Json, changedOffer: Json) =>
      verifyReceipt({ ...part, ...changedPart }, { ...envelope, ...changedOffer }, receiver.thumbprint);
    await expect(judge({}, { goal: 'Refund both charges' })).rejects.toThrow('digest');
    const [head, body] = part.receipt.split('.');
    await expect(judge({ receipt: `${head}.${body}.${'A'.repeat(86)}` }, {})).rejects.toThrow('signature');
    const task = taskIn(answer);
    expect([task.id, task.contextId]).not.toContain(`${envelope.handoff_id}:1`);
    expect(task.status.message).toBeUndefined();
    expect(sender.fetchedBy).toEqual([receiver.url]);
    expect(await owner()).toMatchObject({ owner: receiver.url, epoch: 4 });
  });

  it('[R-113] reads the same task again, over either binding', async () => {
    const task = taskIn(await send(messageOf(envelope)));
    for (const over of ['JSON-RPC', 'HTTP+JSON'] as const) {
      expect(taskIn(await sender.getTask(receiver.url, over, task.id))).toEqual(task);
    }
  });

  it('[R-081][R-082][R-083] gets the same task and receipt for the same bytes, and one work item', async () => {
    const message = messageOf(envelope);
    const [first, second] = await Promise.all([send(message), send(message)]);
    const later = await send(message, {}, binding === 'JSON-RPC' ? 'HTTP+JSON' : 'JSON-RPC');
    await expectAccepted(first);
    expect(taskIn(second)).toEqual(taskIn(first));
    expect(taskIn(later)).toEqual(taskIn(first));
    expect(await receiver.node.ledger.listWork('default', { caseId: envelope.case_id })).toHaveLength(1);
  });

  it('[R-082] gets a conflict for the same key with another body, and what was decided stands', async () => {
    const first = await send(messageOf(envelope));
    const rejection = expectRejected(await send(messageOf({ ...envelope, goal: 'Refund both charges' })));
    expect(rejection).toMatchObject({ code: 'duplicate_conflict', final: false, retryable: false });
    expect(taskIn(await send(messageOf(envelope)))).toEqual(taskIn(first));
  });

  it('[R-047][R-064][R-105] is told what is wrong, keeps the case, and corrects it as attempt 2', async () => {
    const [reference] = envelope.references;
    const wrong = { ...envelope, references: [{ ...reference, sha256: '0'.repeat(64) }] };
    const answer = await send(messageOf(wrong));
    const rejection = expectRejected(answer);
    expect(rejection).toMatchObject({ code: 'evidence_hash_mismatch', retryable: true, final: true });
    expect(await owner()).toMatchObject({ owner: sender.url, epoch: 3 });
    const corrected = { ...envelope, attempt: 2 };
    await expectAccepted(await send(messageOf(corrected)), corrected);
    expect(taskIn(await send(messageOf(wrong)))).toEqual(taskIn(answer));
  });

  it('[R-044] is told when it sends two envelopes, and nothing is decided', async () => {
    const message = JSON.parse(messageOf(envelope));
    const twice = { ...message, parts: [...message.parts, message.parts[1]] };
    expect(expectRejected(await send(JSON.stringify(twice)))).toMatchObject({
      code: 'envelope_multiple',
      final: false,
    });
    await expectAccepted(await send(JSON.stringify(message)));
  });

  it('gets 401 with a challenge, and no reason, for any bad token', async () => {
    const good = sender.token(receiver.url);
    const now = Math.floor(Date.now() / 1000);
    const tokens = [
      null,
      'abc',
      `${good.slice(0, -8)}AAAAAAAA`,
      sender.token(sender.url),
      sender.token(receiver.url, { iss: other.url, sub: other.url }),
      sender.token(receiver.url, { iat: now - 400, exp: now - 100 }),
      sender.token(receiver.url, { exp: now + 301 }),
      sender.token(receiver.url, { jti: undefined }),
      stranger.token(receiver.url),
    ];
    const answers = await Promise.all(tokens.map((token) => send(messageOf(envelope), { token })));
    for (const answer of answers) {
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
      expect(errorInfoIn(answer)).toMatchObject({ reason: 'UNAUTHENTICATED', domain: 'holdfast' });
      expect(answer.body).toEqual(answers[0]?.body);
    }
    expect(await owner()).toMatchObject({ owner: sender.url, epoch: 3 });
  });

  it('may write the names of A2A in snake_case', async () => {
    const message = messageOf(envelope)
      .replace('"messageId"', '"message_id"')
      .replaceAll('"mediaType"', '"media_type"');
    expect(message).not.toBe(messageOf(envelope));
    await expectAccepted(await send(message));
    const both = messageOf({ ...envelope, attempt: 2 }, { message_id: 'x' });
    expect(errorInfoIn(await send(both))).toMatchObject({ reason: 'MESSAGE_INVALID', domain: 'holdfast' });
  });

  it('[R-041] may write its epoch as 3.0: the digest is the same', async () => {
    const message = messageOf(envelope).replace('"epoch":3,', '"epoch":3.0,');
    expect(message).toContain('"epoch":3.0,');
    const answer = await send(message);
    expect(await expectAccepted(answer)).toMatchObject({ digest: digestOf(envelope) });
    expect(taskIn(await send(messageOf(envelope)))).toEqual(taskIn(answer));
  });

  it('is refused without a version of A2A, or with another', async () => {
    for (const version of [null, '0.3']) {
      const answer = await send(messageOf(envelope), { version });
      expect(answer.status).toBe(binding === 'JSON-RPC' ? 200 : 400);
      const reason = 'VERSION_NOT_SUPPORTED';
      expect(errorInfoIn(answer)).toMatchObject({ reason, domain: 'a2a-protocol.org' });
    }
    await expectAccepted(await send(messageOf(envelope)));
  });

  it("[R-045][R-108] may choose neither the context nor the task, which are the receiver's", async () => {
    const context = await send(messageOf(envelope, { contextId: 'ctx-of-mine' }));
    expect(context.status).toBe(binding === 'JSON-RPC' ? 200 : 400);
    expect(errorInfoIn(context)).toMatchObject({ reason: 'MESSAGE_INVALID' });
    expect(JSON.stringify(context.body)).toContain('message.contextId');
    const task = await send(messageOf(envelope, { taskId: 'task-of-mine' }));
    expect(errorInfoIn(task)).toMatchObject({ reason: 'TASK_NOT_FOUND' });
    const answer = await send(messageOf(envelope));
    await expectAccepted(answer);
    expect(taskIn(answer).contextId).not.toBe('ctx-of-mine');
  });

  it("[R-087] learns no more of another agent's task or key than if there were none", async () => {
    const answer = await send(messageOf(envelope));
    await expectAccepted(answer);
    const foreign = await other.getTask(receiver.url, binding, taskIn(answer).id);
    const unknown = await other.getTask(receiver.url, binding, 'task_of_nobody');
    expect(foreign.status).toBe(binding === 'JSON-RPC' ? 200 : 404);
    expect(errorInfoIn(foreign)).toMatchObject({ reason: 'TASK_NOT_FOUND' });
    expect([foreign.status, foreign.body]).toEqual([unknown.status, unknown.body]);
    const copied = expectRejected(await other.send(receiver.url, binding, messageOf(envelope)));
    expect(copied).toMatchObject({ code: 'peer_mismatch' });
    expect(taskIn(await send(messageOf(envelope)))).toEqual(taskIn(answer));
  });
});
