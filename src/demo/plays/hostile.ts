import type { JsonObject } from '../../core/index.js';
import { EVIDENCE_PATH } from '../../protocol/index.js';
import { draftEnvelope, envelopePart, messageOf, withReference } from '../draft.js';
import { FOREIGN_CASE_ID, UNKNOWN_CASE_ID } from '../fixture.js';
import type { Stage } from '../stage.js';

/** V5: evidence that is not what the reference says. */
export async function badEvidence(stage: Stage): Promise<void> {
  let attempt = 0;
  const send = async (
    of: string,
    changes: (reference: JsonObject) => JsonObject | Record<string, undefined>,
  ) => {
    const envelope = await draftEnvelope(stage, { attempt: ++attempt });
    const [reference] = envelope.references as JsonObject[];
    await stage.sendRaw(of, messageOf(withReference(envelope, changes(reference ?? {}))));
  };
  await send('URL expired', () => ({ expires_at: '2026-01-12T10:00:00.000Z' }));
  await send('wrong hash', () => ({ sha256: '0'.repeat(64) }));
  await send('hash missing', () => ({ sha256: undefined }));
  await send('larger than declared', ({ bytes }) => ({ bytes: Number(bytes) - 1 }));
}

/** V6: what is not one envelope of a known version in the right form. */
export async function badForm(stage: Stage): Promise<void> {
  const first = await draftEnvelope(stage, { attempt: 1 });
  await stage.sendRaw('version 3', messageOf(first, [envelopePart({ ...first, version: 3 }, 3)]));
  await stage.sendRaw('two envelope parts', messageOf(first, [envelopePart(first), envelopePart(first)]));
  await stage.sendRaw('no envelope part', messageOf(first, [{ text: 'Please take this over.' }]));
  await stage.sendRaw('an unknown field', messageOf({ ...first, approved_by: 'the supervisor' }));
  const second = await draftEnvelope(stage, { attempt: 2 });
  const wrong = { goal: 7, done: 'all', remaining: null, facts: {}, accept_by: 'tomorrow' };
  await stage.sendRaw('five schema errors', messageOf({ ...second, ...wrong }));
}

/** V7: who sends is not who may. */
export async function badStanding(stage: Stage): Promise<void> {
  const { world } = stage;
  const send = async (of: string, options: Parameters<typeof draftEnvelope>[1], as: 'triage' | 'outsider') =>
    stage.sendRaw(of, messageOf(await draftEnvelope(stage, options)), { as });

  await send(
    'a peer without permission',
    { attempt: 1, caseId: FOREIGN_CASE_ID, from: 'outsider' },
    'outsider',
  );
  await send('a peer in the name of another', { attempt: 1 }, 'outsider');
  await send('an agent that is not the owner', { attempt: 1, caseId: FOREIGN_CASE_ID }, 'triage');
  await send('addressed to another agent', { attempt: 1, to: 'outsider' }, 'triage');
  const envelope = await draftEnvelope(stage, { attempt: 2 });
  await stage.sendRaw('a token for another agent', messageOf(envelope), {
    audience: world.urlOf('outsider'),
  });
}

/** V8: epochs and cases that are not those of the ledger. */
export async function badEpoch(stage: Stage): Promise<void> {
  const send = async (of: string, options: Parameters<typeof draftEnvelope>[1]) =>
    stage.sendRaw(of, messageOf(await draftEnvelope(stage, options)));
  const apart = stage.world.mode === 'separate';
  if (apart) {
    await stage.handOff(await stage.prepare());
    await stage.say('', "first contact: billing's ledger had never heard of CASE-7001, and triage opened it");
    await stage.workSettled();
  }
  await send('a stale epoch', { attempt: 1, epoch: 2 });
  await send('a future epoch', { attempt: 1, epoch: 9 });
  const unknown = apart ? 'an unknown case of another root' : 'an unknown case';
  await send(unknown, { attempt: 1, caseId: UNKNOWN_CASE_ID });
}

/** V15: evidence URLs that lead where a node does not connect. Billing's process can dial nothing but its configured peers. */
export async function badAddress(stage: Stage): Promise<void> {
  const { world } = stage;
  let attempt = 0;
  const send = async (of: string, url: string) =>
    stage.sendRaw(of, messageOf(withReference(await draftEnvelope(stage, { attempt: ++attempt }), { url })));
  const metadata = 'http://169.254.169.254/latest/meta-data/';
  const path = `${EVIDENCE_PATH}/moved`;
  world.proxy('triage').redirect(path, metadata);

  await send('the metadata address', metadata);
  await send('the metadata address, over https', 'https://169.254.169.254/latest/meta-data/');
  await send('a loopback port that is not configured', 'http://127.0.0.1:9/transcript.txt');
  await send('a name that leads to the metadata address', 'https://transcripts.example.com/transcript.txt');
  await send('a redirect to the metadata address', `${world.urlOf('triage')}${path}`);
}
