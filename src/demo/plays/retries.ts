import type { JsonObject } from '../../core/index.js';
import type { HandOffResult } from '../../handoff/index.js';
import { EVIDENCE_PATH } from '../../protocol/index.js';
import { readReceipt } from '../answers.js';
import { draftEnvelope, envelopePart, messageOf } from '../draft.js';
import { IMPORTED_EPOCH } from '../fixture.js';
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

/** V1c: the same, then the case goes to a person of triage's, in triage's ledger. */
export async function escalation(stage: Stage): Promise<void> {
  const { world } = stage;
  await recordsDisagree(stage);
  await stage.witness(
    'after the rejection',
    '',
    'triage is the owner as before, and no agent will take the case',
  );
  const { offers } = await stage.sent();
  const key = offers[0]?.key;
  if (!key) throw new Error('triage has lost its offer');
  const reason = 'the payment records of both sides disagree';
  await world.triage.call('escalate', { key, person: 'ann', reason });
  await stage.witness(
    'with a person',
    '',
    "triage gives it to ann, who answers for it from now on: a handover in triage's ledger",
  );
  const late = () => world.triage.call('retryNote', { ref: world.ref, epoch: IMPORTED_EPOCH });
  await stage.expectRefusal(late, 'a note by triage');
  await stage.say('', 'a note that triage still writes at epoch 3 is refused');
}

/** V2: billing's answer is lost after its commit; the identical bytes are delivered again. */
export async function lostReply(stage: Stage): Promise<void> {
  const { world } = stage;
  world.proxy('billing').loseNextReply();
  const result = await stage.handOff(await stage.prepare());
  await stage.say('', `the answer was lost on its way; triage reads the ledger back: ${result.state}`);
  const { offers } = await stage.sent();
  const { decisions } = await stage.received();
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
  const other = stage.world.mode === 'shared' ? anotherFirst(stage) : anotherMeanwhile(stage);
  await conclude(stage, 'the genuine offer', await stage.handOff(await stage.prepare()));
  await other;
  await stage.workSettled();
  await stage.sendRaw('another body afterwards', await withAnotherGoal(stage));
}

/** The genuine offer waits on its way until the other one has been answered. */
function anotherFirst(stage: Stage): Promise<void> {
  const proxy = stage.world.proxy('billing');
  return new Promise((resolve, reject) => {
    proxy.onMoment = async (moment, { isOffer }) => {
      if (moment !== 'request' || !isOffer) return;
      proxy.onMoment = null;
      await stage.sendRaw('another body first', await withAnotherGoal(stage)).then(() => resolve(), reject);
    };
  });
}

/** Billing waits for the evidence of the genuine offer until the other one has come in. */
function anotherMeanwhile(stage: Stage): Promise<void> {
  const [billing, triage] = [stage.world.proxy('billing'), stage.world.proxy('triage')];
  return new Promise((resolve, reject) => {
    triage.onMoment = async (moment, { path }) => {
      if (moment !== 'request' || !path.startsWith(`${EVIDENCE_PATH}/`)) return;
      triage.onMoment = null;
      const arrived = new Promise<void>((onward) => {
        billing.onMoment = async (_, { isOffer }) => {
          if (isOffer) onward();
        };
      });
      const message = await withAnotherGoal(stage);
      void stage.sendRaw('another body meanwhile', message).then(() => resolve(), reject);
      await arrived;
      billing.onMoment = null;
    };
  });
}

async function withAnotherGoal(stage: Stage): Promise<JsonObject> {
  const { offers } = await stage.sent();
  const message = JSON.parse(offers[0]?.message ?? '{}') as { parts: JsonObject[] } & JsonObject;
  const parts = message.parts.map((part) =>
    part.data === undefined
      ? part
      : envelopePart({ ...(part.data as JsonObject), goal: 'refund both payments' }),
  );
  return { ...message, parts };
}
