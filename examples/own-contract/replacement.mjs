import { accept, defineContract, reject } from 'holdfast';
import * as z from 'zod';

// Any Standard Schema will do. zod, valibot and arktype make such objects; this one is made by hand.
const sku = {
  '~standard': {
    version: 1,
    vendor: 'own',
    validate: (value) =>
      typeof value === 'string' && /^[A-Z]{2}-[0-9]{4}$/.test(value)
        ? { value }
        : { issues: [{ message: 'must be an article number such as RK-0007' }] },
  },
};

export default defineContract({
  // Together the id: replacement/1.
  name: 'replacement',
  version: 1,
  // The receiver's skill; its Agent Card shows this.
  skill: {
    id: 'warehouse',
    name: 'Replacements',
    description: 'Takes over a case of damaged goods and ships the article again, at most once.',
    tags: ['warehouse', 'replacement'],
  },
  // For what the receiver gets all of it. It is also the goal that crosses where `allow` does not name `goal`.
  purpose: 'Decide on a replacement for damaged goods and ship it at most once.',
  // What may cross, by key. A fact that is not named here stays at home.
  facts: {
    order_id: {
      schema: z.string().regex(/^ord_[0-9]{1,12}$/),
      required: true, // missing: fact_missing
      verified: true, // the sender must have checked it: fact_unverified
      sources: ['shop'], // and this must be where: fact_unverified
      loggable: true, // its value may stand in the audit and in logs
      why: 'Value: short, and the warehouse finds its own order by it.',
    },
    article: { schema: sku, required: true, verified: true, sources: ['shop'], why: 'Value: what to ship.' },
    damage: {
      schema: z.enum(['broken', 'wet', 'incomplete']),
      required: true,
      why: "Value: a code; the customer's own words stay in the evidence.",
    },
    delivery_address: {
      schema: z.strictObject({ street: z.string().max(100), city: z.string().max(100) }),
      required: false,
      personal: true, // the purpose needs it: not scanned, not summarised, never loggable
      why: 'Value: only where the parcel is to go elsewhere than the order did.',
    },
  },
  // What else of the case file may leave: goal, done, remaining, open_questions, constraints, artifact, source_task_id.
  allow: ['goal', 'done', 'constraints'],
  // What the sender must state: a deadline, a cap for these operations, these prohibitions. Else constraint_missing.
  constraints: { deadline: true, caps: [], prohibitions: ['refund'] },
  // What the receiver may do on the case. The kind's policy narrows it further.
  operations: ['ship'],
  // By reference: how many, of which media types, how large each. The receiver fetches and hashes them before it decides.
  evidence: { min: 0, max: 3, mediaTypes: ['image/jpeg', 'text/plain'], maxBytes: 2 * 1024 * 1024 },
  // What the receiver is to produce, and the form of the result it settles its work item with.
  requiredOutput: 'replacement-decision/1',
  output: z.strictObject({
    decision: z.enum(['shipped', 'declined']),
    parcel: z.string().max(64).optional(),
  }),
  // Codes of its own that a check may reject with, beside those of the error table.
  codes: { out_of_stock: 'The article cannot be shipped within the deadline.' },
  // The same answer for the same offer, whoever receives it. What only the receiver knows belongs in its handler's check.
  accept: ({ facts, evidence }) =>
    facts.damage === 'broken' && evidence.length === 0
      ? reject('evidence_empty', 'Broken goods need a picture or a description.')
      : accept(),
});
