// An agent's process that is made to die: `doomed.mjs DIR`. Plain JavaScript on the built package.
import { openHoldfast } from '../../dist/index.js';

const status = (state) => ({ state, timestamp: new Date().toISOString() });

/** Three events, then work that does not end. */
const executor = {
  async execute({ taskId, contextId, userMessage }, bus) {
    const task = { id: taskId, contextId, artifacts: [], history: [userMessage] };
    bus.publish({ kind: 'task', data: { ...task, status: status(2) } });
    for (const artifactId of ['one', 'two']) {
      const artifact = { artifactId, name: '', description: '', parts: [], extensions: [] };
      bus.publish({
        kind: 'artifactUpdate',
        data: { taskId, contextId, artifact, append: false, lastChunk: true },
      });
    }
    bus.publish({ kind: 'statusUpdate', data: { taskId, contextId, status: status(6) } });
    await new Promise(() => undefined);
  },
  async cancelTask() {},
};

const pace = { leaseMs: 1_500, beatMs: 300, sweepMs: 100, pushBackoffMs: [300] };
const holdfast = await openHoldfast({ dir: process.argv[2], executor, ports: { pace } });
await holdfast.start();
process.send({ up: true });
