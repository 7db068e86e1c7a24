// A sender's process that is made to die between two candidates: `doomed-candidates.mjs DIR CONFIG INPUT`. Plain JavaScript on the built package.
import { openHoldfast } from '../../dist/index.js';

const [dir, config, input] = process.argv.slice(2);
// It goes on with what it was asked for, and looks for nothing else.
const pace = { leaseMs: 1_500, beatMs: 300, sweepMs: 60_000 };
const holdfast = await openHoldfast({ dir, config: JSON.parse(config), ports: { pace } });
const { port } = await holdfast.start({ port: 0 });
process.send({ port });
process.once('message', async () => {
  await holdfast.handOff(JSON.parse(input));
  process.send({ survived: true });
});
