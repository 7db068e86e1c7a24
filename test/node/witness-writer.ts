import { openHoldfast } from '../../src/index.js';

/** A process of its own that opens cases and then waits until it is killed: `witness-writer.ts DIR`. */
const [dir = ''] = process.argv.slice(2);
const holdfast = await openHoldfast({ dir });
await holdfast.applyKinds();
for (let n = 1; n <= 60; n += 1) {
  const { ref } = await holdfast.openCase({ caseId: `CASE-${n}`, kind: 'refund' });
  process.stdout.write(`${ref.caseId}\n`);
}
setInterval(() => {}, 1000);
