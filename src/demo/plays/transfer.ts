import { EVIDENCE_PATH } from '../../protocol/index.js';
import { IMPORTED_EPOCH } from '../fixture.js';
import type { Crossing, Moment, RecordingProxy } from '../proxy.js';
import type { Stage } from '../stage.js';

/** Scenario B1, steps 1 to 9. */
export async function transfer(stage: Stage): Promise<void> {
  const { world } = stage;
  await stage.say(
    '',
    'the case system hands CASE-7001 in; triage verifies the account and finds two payments',
  );
  watch(stage);
  const result = await stage.handOff(await stage.prepare());
  unwatch(stage);
  if (result.state !== 'accepted') return;

  await stage.say('6', 'billing answers: task COMPLETED, with a signed receipt as its artifact');
  await stage.say(
    '7',
    'triage verifies the receipt and lets go; a customer now gets a pointer to billing only',
  );
  await stage.expectRefusal(() => world.triage.call('retryNote', { ref: world.ref, epoch: IMPORTED_EPOCH }));
  const late = stage.refused.at(-1);
  await stage.say(
    '8',
    `a retry job of triage's writes a note at epoch ${IMPORTED_EPOCH}: the ledger refuses it (${late?.code}, ` +
      `presented ${late?.presented}, current ${late?.current}); the note is absent`,
  );
  await stage.workSettled();
  await stage.say('9', 'billing refunds 49.00 EUR, once, at epoch 4, and finishes its work item');
}

/** Holds the messages of one handover at the moments at which a wrong owner would show. */
function watch(stage: Stage): void {
  const { world } = stage;
  const onOffer = async (moment: Moment, { isOffer }: Crossing): Promise<void> => {
    if (!isOffer) return;
    if (moment === 'request') {
      const { offers } = await stage.sent();
      const withheld = offers[0]?.withheld.map(({ path }) => path).join(', ');
      await stage.say('1', 'triage has stored its intent and the exact bytes of the offer');
      await stage.say(
        '2',
        `redaction for the skill billing kept back: ${withheld}; and the transcript is a redacted copy`,
      );
      await stage.witness(
        'offer on its way',
        '3',
        'the offer is on its way; billing has not seen it, triage is the owner',
      );
      if (world.mode === 'separate') await refundTooEarly(stage);
    } else {
      await stage.witness(
        'answer on its way',
        '5',
        'billing has committed its acceptance; triage does not know yet',
      );
    }
  };
  const onEvidence = async (moment: Moment, { method, path }: Crossing): Promise<void> => {
    if (method === 'GET' && moment === 'request' && path.startsWith(`${EVIDENCE_PATH}/`)) {
      await stage.witness(
        'evidence fetched',
        '4',
        'the cheap checks have passed; billing fetches the transcript and hashes it',
      );
    }
  };
  world.proxy('billing').onMoment = onOffer;
  world.proxy('triage').onMoment = onEvidence;
}

/** Whoever cannot know whether billing has accepted must not act. */
async function refundTooEarly(stage: Stage): Promise<void> {
  const { triage, ref } = stage.world;
  await stage.expectRefusal(
    () => triage.call('hastyRefund', { ref, epoch: IMPORTED_EPOCH }),
    'a refund by triage',
  );
  await stage.say('', 'triage tries to refund by itself: its ledger refuses while the offer is open');
}

function unwatch({ world }: Stage): void {
  for (const proxy of [world.proxy('billing'), world.proxy('triage')] satisfies RecordingProxy[]) {
    proxy.onMoment = null;
  }
}
