import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  accept,
  type Holdfast,
  type OfferRow,
  type OfferView,
  openHoldfast,
  parseCaseFile,
  reject,
} from '../../src/index.js';
import { CASE_FILE, CONTRACT, initPair, temporaryFolder } from '../cli/support.js';

let folder: ReturnType<typeof temporaryFolder>;
const opened: Holdfast[] = [];

beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((holdfast) => holdfast.close()));
  folder.remove();
});

function referencesOf({ message }: OfferRow): unknown {
  const { parts } = JSON.parse(message) as { parts: { url?: string; metadata?: Record<string, unknown> }[] };
  return parts
    .filter(({ url }) => url !== undefined)
    .map(({ metadata }) => [metadata?.artifactId, metadata?.version]);
}

it('[R-112] a corrected offer names its own artifact version, and what came of the one before stays', async () => {
  const agents = await initPair(folder.path);
  const triage = await openHoldfast({ dir: agents.triage.dir });
  const billing = await openHoldfast({ dir: agents.billing.dir });
  opened.push(triage, billing);
  const seen: [number | undefined, string][] = [];
  billing.onHandoff(CONTRACT, {
    check: async ({ evidence }: OfferView) => {
      const [first] = evidence;
      const text = new TextDecoder().decode(await first?.read());
      seen.push([first?.version, text]);
      return text.includes('corrected')
        ? accept()
        : reject('records_disagree', 'The claim is of another day.');
    },
  });
  await triage.start();
  await billing.start();
  const { ref } = await triage.openCase({ caseId: 'CASE-7001', kind: 'refund' });
  const info = { filename: 'claim.txt', mediaType: 'text/plain', artifactId: 'claim-7001' };
  const version1 = await triage.addEvidence(Buffer.from('charged twice'), info);
  const input = {
    ref,
    caseFile: parseCaseFile(readFileSync(CASE_FILE)),
    to: billing.url,
    contract: CONTRACT,
    evidence: [{ artifactId: info.artifactId }],
  };
  const first = await triage.handOff(input);
  expect(first).toMatchObject({ state: 'rejected', code: 'records_disagree' });
  const before = await triage.ledger.findDecision(first.offer.key);
  const taskOf = async (taskId: string) => triage.ledger.getTask('default', triage.url, taskId);
  const task = await taskOf(before?.taskId ?? '');
  expect(task).not.toBeNull();

  const version2 = await triage.addEvidence(Buffer.from('charged twice, corrected'), info);
  expect(version2).toMatchObject({ artifactId: info.artifactId, version: 2 });
  expect(await triage.handOff(input)).toMatchObject({ state: 'accepted', epoch: 2 });

  expect(seen).toEqual([
    [1, 'charged twice'],
    [2, 'charged twice, corrected'],
  ]);
  const { offers, decisions, work } = await billing.ledger.snapshot(ref);
  const inOrder = [...offers].sort((a, b) => a.key.attempt - b.key.attempt);
  expect(inOrder.map((offer) => [offer.state, referencesOf(offer)])).toEqual([
    ['rejected', [[info.artifactId, 1]]],
    ['accepted', [[info.artifactId, 2]]],
  ]);
  expect(decisions).toHaveLength(2);
  expect(await triage.ledger.findDecision(first.offer.key)).toEqual(before);
  expect(await taskOf(before?.taskId ?? '')).toEqual(task);
  expect(JSON.parse(work[0]?.envelope ?? '{}').references).toMatchObject([
    { artifact_id: info.artifactId, version: 2, sha256: version2.sha256 },
  ]);

  // The sender keeps the lineage; the receiver keeps what it decided on, both times.
  expect(await triage.evidence.find(info.artifactId, 1)).toEqual(version1);
  const kept = (await billing.evidence.list()).map(({ sha256 }) => sha256);
  expect(kept.sort()).toEqual([version1.sha256, version2.sha256].sort());
});
