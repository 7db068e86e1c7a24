import { accept, defineContract, reject } from 'holdfast';
import * as z from 'zod';

const id = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/);
const money = z.strictObject({
  amount: z.string().regex(/^[0-9]{1,9}\.[0-9]{2}$/),
  currency: z.literal('EUR'),
});
const payment = z.strictObject({
  id,
  amount: z.string(),
  currency: z.literal('EUR'),
  method: z.enum(['card', 'transfer']),
  created_at: z.iso.datetime(),
});

/** The dispute of a double charge without its evidence: fetching that is a measurement of its own. */
export default defineContract({
  name: 'double-charge',
  version: 1,
  skill: {
    id: 'billing',
    name: 'Double charges',
    description: 'Takes over a disputed double charge and refunds it at most once.',
    tags: ['billing'],
  },
  purpose: 'Decide on a disputed double charge and refund it at most once.',
  facts: {
    account_id: {
      schema: id,
      required: true,
      verified: true,
      sources: ['auth'],
      loggable: true,
      why: 'Value.',
    },
    payment_a: { schema: payment, required: true, verified: true, sources: ['payments'], why: 'Value.' },
    payment_b: { schema: payment, required: true, verified: true, sources: ['payments'], why: 'Value.' },
    disputed_amount: { schema: money, required: true, sources: ['customer'], loggable: true, why: 'Value.' },
    reason: { schema: z.enum(['duplicate_charge']), required: false, loggable: true, why: 'Value: a code.' },
  },
  allow: ['goal', 'done', 'remaining', 'open_questions', 'constraints'],
  constraints: { deadline: true, caps: ['refund'], prohibitions: [] },
  operations: ['refund'],
  evidence: { min: 0, max: 5, mediaTypes: ['text/plain'], maxBytes: 5 * 1024 * 1024 },
  accept: ({ facts }) =>
    facts.payment_a.amount === facts.payment_b.amount && facts.payment_a.id !== facts.payment_b.id
      ? accept()
      : reject('records_disagree', 'These are not two equal payments.'),
});
