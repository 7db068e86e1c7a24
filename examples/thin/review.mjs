import { accept, defineContract, reject } from 'holdfast';
import * as z from 'zod';

export default defineContract({
  name: 'refund-review',
  version: 1,
  // Its envelope names the case and carries nothing of it.
  thin: true,
  skill: {
    id: 'review',
    name: 'Refund reviews',
    description: 'Reviews a refund that the desk prepared.',
    tags: ['refund'],
  },
  purpose: 'Review a refund that the desk prepared.',
  // What each side must find in the system of record. Other facts that a reader gives are left alone.
  facts: {
    payment: {
      schema: z.string(),
      required: true,
      verified: true,
      sources: ['desk'],
      loggable: true,
      why: 'Read.',
    },
    disputed: {
      schema: z.strictObject({ amount: z.string(), currency: z.string() }),
      required: true,
      why: 'Read.',
    },
  },
  // Nothing leaves, so nothing is allowed, no deadline can be asked for, and there is no evidence.
  allow: [],
  constraints: { deadline: false, caps: ['refund'], prohibitions: [] }, // from the policy of the kind
  operations: ['refund'],
  evidence: { min: 0, max: 0, mediaTypes: [], maxBytes: 1 },
  accept: ({ facts }) =>
    facts.disputed.currency === 'EUR' ? accept() : reject('contract_refused', 'Only euros are reviewed.'),
});
