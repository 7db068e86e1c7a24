// An agent's process that is made to die somewhere: `doomed.mjs send|receive DIR PEER CASE...`. Plain JavaScript on the built package.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openHoldfast, parseCaseFile, refundDispute } from '../../dist/index.js';

const [role, dir, peer, ...cases] = process.argv.slice(2);
// One that sends looks for open offers when it starts only, so that it is its caller that delivers.
const pace = { leaseMs: 1_500, beatMs: 300, sweepMs: role === 'send' ? 60_000 : 100 };
const holdfast = await openHoldfast({ dir, ports: { pace } });
const source = JSON.parse(readFileSync(join(import.meta.dirname, '../../examples/refund/case.json'), 'utf8'));

if (role === 'receive') {
  holdfast.onHandoff(refundDispute.id, {
    async work(work) {
      process.send({ started: work.ref.caseId });
      await new Promise((resolve) => setTimeout(resolve, Number(peer)));
      await work.done({ decision: 'refunded' });
    },
  });
}
const { port } = await holdfast.start(role === 'receive' ? { port: 0 } : {});
process.send({ port });
process.once('SIGTERM', async () => {
  process.send({ closing: true });
  await holdfast.close();
  process.disconnect();
});
for (const caseId of cases) {
  const { ref } = await holdfast.openCase({ caseId, kind: 'refund' });
  const evidence = await holdfast.addEvidence(Buffer.from(`charged twice, ${caseId}`), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  const caseFile = parseCaseFile(Buffer.from(JSON.stringify({ ...source, case_id: caseId })));
  const evidenceOf = [{ artifactId: evidence.artifactId }];
  await holdfast.handOff({ ref, caseFile, to: peer, contract: refundDispute.id, evidence: evidenceOf });
}
