import type { Moment } from '../proxy.js';
import type { Stage } from '../stage.js';

/**
 * V3: triage dies four times over one handover: with its intent stored and nothing sent, with the offer on its way, with the answer on
 * its way back, and with the receipt verified and not stored. Each time it starts again and goes on from what it had stored.
 */
export async function senderCrashes(stage: Stage): Promise<void> {
  const { world } = stage;
  const dying = ignoringDeath(stage.handOff(await stage.prepare()));
  await world.triage.died();
  await dying;
  await stage.witness('intent stored', '1', 'triage dies: its intent is stored, nothing was sent');

  const onItsWay = moment(stage, 'request', async () => {
    await world.triage.kill();
    await stage.witness('offer on its way', '3', 'triage dies again: the offer is on its way');
  });
  await world.restart('triage');
  await onItsWay;

  const answered = moment(stage, 'reply', async () => {
    await world.triage.kill();
    await stage.witness('answer on its way', '6', 'triage dies once more: billing has accepted and answered');
  });
  await world.restart('triage');
  await answered;

  // Else billing's answer to that could bring the receipt first.
  world.proxy('billing').onMoment = async (_, { isAnnouncement }) => {
    if (isAnnouncement) throw new Error('lost on its way');
  };
  await ignoringDeath(world.restart('triage', 'S6.before_commit=kill9'));
  await world.triage.died();
  world.proxy('billing').onMoment = null;
  await stage.witness(
    'receipt not stored',
    '7',
    'triage dies a last time: it has verified the receipt, and not stored it',
  );

  await world.restart('triage');
  await stage.receiptKept();
  await stage.say('7', 'triage starts again, reads the acceptance back and keeps its receipt');
  await stage.workSettled();
}

/** V4: billing dies before its acceptance commits, and again between the commit and the answer. */
export async function receiverCrashes(stage: Stage): Promise<void> {
  const { world } = stage;
  const handedOver = stage.handOff(await stage.prepare());
  await world.billing.died();
  await stage.witness('before the commit', '4', 'billing dies before it commits: nothing has moved');
  await world.restart('billing', 'R3.after_commit=kill9');
  await world.billing.died();
  await stage.witness('before the answer', '5', 'billing dies again: it has accepted, and told nobody');
  const { decisions } = await stage.received();
  await stage.say('', `the ledger is asked: ${decisions[0]?.verdict} at epoch ${decisions[0]?.epochAfter}`);
  await world.restart('billing');
  await handedOver;
  await stage.receiptKept();
  await stage.say('7', 'triage has read the decision back, and verified its receipt');
  await stage.workSettled();
}

/** Resolves when an offer to billing has come to this moment, was held for `act`, and was dropped where it stood. */
function moment(stage: Stage, at: Moment, act: () => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    stage.world.proxy('billing').onMoment = async (reached, { isOffer }) => {
      if (reached !== at || !isOffer) return;
      stage.world.proxy('billing').onMoment = null;
      await act().then(resolve, reject);
      throw new Error('lost on its way');
    };
  });
}

/** The process that was asked dies under the question. */
async function ignoringDeath(call: Promise<unknown>): Promise<void> {
  await call.catch(() => undefined);
}
