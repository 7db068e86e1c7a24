// Billing's process, made to die somewhere: `doomed.mjs DIR CONFIG`. Plain JavaScript on the built package.
import { accept, clarify, defineContract, openHoldfast } from '../../dist/index.js';

const [dir, config] = process.argv.slice(2);
const text = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) =>
      typeof value === 'string' ? { value } : { issues: [{ message: 'must be a text' }] },
  },
};
const fact = { schema: text, required: false, why: 'Value: short.' };
const goodwill = defineContract({
  name: 'goodwill',
  version: 1,
  skill: { id: 'goodwill', name: 'Goodwill', description: 'Decides on goodwill.', tags: ['goodwill'] },
  purpose: 'Decide on a goodwill payment.',
  facts: { account_id: { ...fact, required: true }, channel: fact },
  allow: ['goal', 'done', 'remaining', 'constraints'],
  constraints: { deadline: false, caps: [], prohibitions: [] },
  operations: ['refund'],
  evidence: { min: 0, max: 0, mediaTypes: [], maxBytes: 1 },
});
const pace = { leaseMs: 1_500, beatMs: 300, sweepMs: 50 };
const holdfast = await openHoldfast({ dir, config: JSON.parse(config), ports: { pace } });
holdfast.onHandoff(goodwill, {
  check: ({ caseId, clarifications }) =>
    caseId === 'CASE-2' && clarifications.length === 0 ? clarify('Which channel?') : accept(),
});
await holdfast.start();
process.send('up');
