import type { JsonObject } from '../../core/index.js';
import { EVIDENCE_PATH } from '../../protocol/index.js';
import type { Stage } from '../stage.js';

/** Long enough for the first agent to come as far as it comes here, on a busy machine too. */
const ACCEPT_WITHIN_MS = 6_000;

/**
 * V10: triage names two billing agents, in order, and does not wait. The first stops when it is about to accept, and the line to it is down,
 * until long after the time that it had; the second is asked once the offer to the first is closed by proof.
 */
export async function secondCandidate(stage: Stage): Promise<void> {
  const { world } = stage;
  const prepared = await stage.prepare();
  watchSecond(stage);
  const halted = untilEvidenceIsFetched(stage);
  const handedOver = stage.handOff(prepared, {
    to: [world.billingUrl, world.urlOf('billing2')],
    waiting: 'queued',
    acceptWithinMs: ACCEPT_WITHIN_MS,
  });
  await halted;
  world.proxy('billing').cut();
  await handedOver;
  await stage.witness(
    'no answer',
    '',
    'billing stops just before it would accept, and cannot be reached any more',
  );
  if (world.mode === 'shared') await settledHere(stage);
  else await settledThere(stage);

  const { offers } = await stage.sent();
  await stage.sendRaw('the first offer, once more', JSON.parse(offers[0]?.message ?? '{}') as JsonObject);
  await stage.workSettled('billing2');
  await stage.say('', 'billing2 refunds 49.00 EUR, once, at epoch 4');
}

/** One ledger: triage voids the offer there, whatever billing does. Billing goes on when the case is long with the other. */
async function settledHere(stage: Stage): Promise<void> {
  await taken(stage);
  stage.world.billing.resume();
  stage.world.proxy('billing').mend();
  await stage.until(
    () => stage.received(),
    ({ audit }) => audit.some(({ type }) => type === 'delivery_repeated'),
    'billing did not find its offer voided in time',
  );
  await stage.witness('late acceptance', '', 'billing goes on and accepts: too late, the ledger refuses it');
}

/** A ledger each: nothing but what billing has stored closes the offer, so that triage waits in doubt for it. */
async function settledThere(stage: Stage): Promise<void> {
  const { world } = stage;
  await stage.until(
    () => stage.sent(),
    ({ offers }) => offers[0]?.state === 'in_doubt',
    'triage did not doubt its offer in time',
  );
  await stage.witness(
    'in doubt',
    '',
    'the time is over; billing may have accepted, so nobody else is asked, and nobody acts',
  );
  world.billing.resume();
  await stage.until(
    () => stage.received(),
    ({ decisions }) => decisions.length > 0,
    'billing did not decide in time',
  );
  await stage.witness(
    'late acceptance',
    '',
    'billing goes on and accepts: too late by its own clock, it stores a rejection',
  );
  world.proxy('billing').mend();
  await taken(stage);
}

/** Resolves when triage knows that the second agent has accepted. */
async function taken(stage: Stage): Promise<void> {
  await stage.until(
    () => stage.sent(),
    ({ offers }) => offers[1]?.receipt != null,
    'billing2 did not accept in time',
  );
  await stage.say('', 'triage verifies the receipt of billing2');
}

function watchSecond(stage: Stage): void {
  const proxy = stage.world.proxy('billing2');
  proxy.onMoment = async (moment, { isOffer }) => {
    if (!isOffer) return;
    if (moment === 'request') {
      await stage.witness(
        'second offer on its way',
        '',
        'the offer to billing is closed by proof; the next goes to billing2',
      );
      return;
    }
    proxy.onMoment = null;
    await stage.witness(
      'answer of the second',
      '',
      'billing2 has committed its acceptance; triage does not know yet',
    );
  };
}

function untilEvidenceIsFetched(stage: Stage): Promise<void> {
  const proxy = stage.world.proxy('triage');
  return new Promise((resolve) => {
    proxy.onMoment = async (moment, { path }) => {
      if (moment !== 'reply' || !path.startsWith(`${EVIDENCE_PATH}/`)) return;
      proxy.onMoment = null;
      resolve();
    };
  });
}
