import type { JsonObject } from '../../core/index.js';
import type { HandOffResult } from '../../handoff/index.js';
import { readReceipt } from '../answers.js';
import { draftEnvelope, envelopePart, messageOf } from '../draft.js';
import type { Stage } from '../stage.js';

/** What an offer came to, as one line and, where it was refused, as an entry. */
async function conclude(stage: Stage, of: string, result: HandOffResult): Promise<void> {
  if (result.state === 'rejected') {
    const { code, fields } = result;
    stage.refuse({ of, code, final: true, ...(fields.length > 0 ? { fields: fields.length } : {}) });
    await stage.say('', `${of}: rejected, ${code}. ${result.reason}`);
  } else await stage.say('', `${of}: ${result.state}`);
}

/** V1: billing's own records do not have the second payment. */
export async function recordsDisagree(stage: Stage): Promise<void> {
  const prepared = await stage.prepare();
  stage.world.systems.forgetPayment('pay_B');
  await stage.say('', 'pay_B is missing from the records that billing compares with');
  await conclude(stage, 'attempt 1', await stage.handOff(prepared));
}

/** V1b: the same, then a corrected attempt, which is judged for itself. */
export async function correctedAttempt(stage: Stage): Promise<void> {
  await recordsDisagree(stage);
  stage.world.systems.restorePayment('pay_B');
  const prepared = await stage.prepare();
  const caseFile = {
    ...prepared.caseFile,
    done: [...(prepared.caseFile.done ?? []), 'payment records reconciled'],
  };
  await conclude(stage, 'attempt 2', await stage.handOff({ ...prepared, caseFile }));
  await stage.workSettled();
}

/** V2: billing's answer is lost after its commit; the identical bytes are delivered again. */
export async function lostReply(stage: Stage): Promise<void> {
  const { world } = stage;
  world.proxy('billing').loseNextReply();
  const result = await stage.handOff(await stage.prepare());
  await stage.say('', `the answer was lost on its way; triage reads the ledger back: ${result.state}`);
  const { offers, decisions } = await stage.snapshot();
  const message = JSON.parse(offers[0]?.message ?? '{}') as JsonObject;
  const answer = await stage.sendRaw('the same bytes again', message);
  const stored = JSON.parse(decisions[0]?.answer ?? '{}') as { receipt?: string };
  if (readReceipt(answer) === null || readReceipt(answer) !== stored.receipt) {
    stage.refuse({ of: 'the same bytes again', code: 'another_receipt' });
  }
  await stage.workSettled();
}

/** V9: the transcript holds an order to refund more than the cap, and billing obeys what it reads. */
export async function injectedOrder(stage: Stage): Promise<void> {
  await conclude(stage, 'attempt 1', await stage.handOff(await stage.prepare()));
  const { audit } = await stage.workSettled();
  for (const { type, rule } of audit) {
    if (type === 'write_refused') stage.refuse({ of: 'the order in the transcript', code: String(rule) });
  }
  await stage.say(
    '',
    'billing tried to refund 500.00 EUR as the transcript says; the cap of 100.00 EUR held',
  );
}

/** V12: the sender puts a context of its own into the message; then it does without. */
export async function foreignContext(stage: Stage): Promise<void> {
  const message = messageOf(await draftEnvelope(stage, { attempt: 1 }));
  await stage.sendRaw('a contextId of the sender', { ...message, contextId: 'ctx-of-triage' });
  await conclude(stage, 'without it', await stage.handOff(await stage.prepare()));
  await stage.workSettled();
}

/** V14: the key of an offer with another body, before the offer is decided and after. */
export async function changedBody(stage: Stage): Promise<void> {
  const proxy = stage.world.proxy('billing');
  proxy.onMoment = async (moment, method) => {
    if (moment !== 'request' || method !== 'POST') return;
    // The genuine offer waits here until the other one has been answered.
    proxy.onMoment = null;
    await stage.sendRaw('another body first', await withAnotherGoal(stage));
  };
  await conclude(stage, 'the genuine offer', await stage.handOff(await stage.prepare()));
  await stage.workSettled();
  await stage.sendRaw('another body afterwards', await withAnotherGoal(stage));
}

async function withAnotherGoal(stage: Stage): Promise<JsonObject> {
  const { offers } = await stage.snapshot();
  const message = JSON.parse(offers[0]?.message ?? '{}') as { parts: JsonObject[] } & JsonObject;
  const parts = message.parts.map((part) =>
    part.data === undefined
      ? part
      : envelopePart({ ...(part.data as JsonObject), goal: 'refund both payments' }),
  );
  return { ...message, parts };
}
