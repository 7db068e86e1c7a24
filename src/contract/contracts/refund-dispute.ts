import * as z from 'zod';
import {
  AMOUNT_PATTERN,
  CURRENCY_PATTERN,
  compareAmounts,
  type Money,
  UTC_PATTERN,
} from '../../core/index.js';
import { defineContract } from '../define.js';
import type { OfferView, Verdict } from '../model.js';
import { accept, reject } from '../verdict.js';

const id = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be an id of 1 to 64 characters');
const money = z.strictObject({
  amount: z.string().regex(AMOUNT_PATTERN, 'must be a decimal amount such as "49.00"'),
  currency: z.string().regex(CURRENCY_PATTERN, 'must be an ISO 4217 code'),
});
const payment = z.strictObject({
  id,
  ...money.shape,
  method: z.string().regex(/^[a-z][a-z0-9_]{0,31}$/, 'must be a payment method such as card'),
  created_at: z.string().regex(UTC_PATTERN, 'must be a UTC time with Z'),
});

interface RefundFacts {
  readonly payment_a: z.infer<typeof payment>;
  readonly payment_b: z.infer<typeof payment>;
  readonly disputed_amount: Money;
}

function sameMoney(a: Money, b: Money): boolean {
  return a.currency === b.currency && compareAmounts(a.amount, b.amount) === 0;
}

function refuse(path: string, problem: string): Verdict {
  return reject('contract_refused', `The dispute does not hold together: ${path} ${problem}.`, {
    fields: [{ path, problem }],
  });
}

/** Whether the case is a double charge at all, from what was received alone. The receiver's own records come after. */
function check(offer: OfferView): Verdict {
  const { payment_a: a, payment_b: b, disputed_amount: claim } = offer.facts as unknown as RefundFacts;
  const caps = (offer.envelope as { constraints: { caps: Record<string, Money> } }).constraints.caps;
  const empty = offer.evidence.findIndex((each) => each.bytes === 0);
  if (empty >= 0) {
    return reject('evidence_empty', 'A piece of evidence has no content.', {
      fields: [{ path: `references.${empty}.bytes`, problem: 'must not be 0' }],
    });
  }
  if (a.id === b.id) return refuse('facts.payment_b.value.id', 'must differ from the first payment');
  if (!sameMoney(a, b)) return refuse('facts.payment_b.value.amount', 'must equal the first payment');
  if (!sameMoney(a, claim)) return refuse('facts.disputed_amount.value', 'must equal one payment');
  const cap = caps.refund;
  if (cap === undefined || cap.currency !== claim.currency || compareAmounts(claim.amount, cap.amount) > 0) {
    return refuse('constraints.caps.refund', 'must cover the disputed amount in its currency');
  }
  return accept();
}

/** A customer was charged twice for one purchase; billing decides on a refund of one of the two payments. */
export const refundDispute = defineContract({
  name: 'refund-dispute',
  version: 1,
  skill: {
    id: 'billing',
    name: 'Billing disputes',
    description:
      'Takes over a disputed double charge, checks it against the payment records and refunds at most once.',
    tags: ['billing', 'refund'],
  },
  purpose: 'Decide on a disputed double charge and refund it at most once.',
  facts: {
    account_id: {
      schema: id,
      required: true,
      verified: true,
      sources: ['auth'],
      loggable: true,
      why: 'Value: short, and billing needs it to find its own account; name and contact stay in the account system.',
    },
    payment_a: {
      schema: payment,
      required: true,
      verified: true,
      sources: ['payments'],
      why: 'Value: the claim must stay fixed as triage saw it; billing compares it with its own record.',
    },
    payment_b: {
      schema: payment,
      required: true,
      verified: true,
      sources: ['payments'],
      why: 'Value: the claim must stay fixed as triage saw it; billing compares it with its own record.',
    },
    disputed_amount: {
      schema: money,
      required: true,
      sources: ['customer'],
      loggable: true,
      why: "Value: the customer's claim, kept apart from what was verified.",
    },
    reason: {
      schema: z.enum(['duplicate_charge', 'duplicate_capture']),
      required: false,
      loggable: true,
      why: 'Value: a code instead of the words of the customer, which stay in the referenced transcript.',
    },
  },
  allow: ['goal', 'done', 'remaining', 'open_questions', 'constraints'],
  constraints: { deadline: true, caps: ['refund'], prohibitions: [] },
  operations: ['refund'],
  evidence: {
    min: 1,
    max: 5,
    mediaTypes: ['text/plain', 'text/markdown', 'application/json', 'application/pdf'],
    maxBytes: 5 * 1024 * 1024,
  },
  requiredOutput: 'refund-decision/1',
  output: z.strictObject({
    decision: z.enum(['refunded', 'declined']),
    refund_id: id.optional(),
    amount: money.optional(),
    reason: z.string().max(500).optional(),
  }),
  accept: check,
});
