/**
 * What billing does with a refund dispute: compares it with its own records, refunds one payment once, and settles the work.
 * Name it in holdfast.yaml: `handlers: ./billing.mjs`.
 */

/** Your payment system goes here; this one holds two payments and remembers refunds by their idempotency key. */
const payments = new Map([
  ['pay_A', { amount: '49.00', currency: 'EUR' }],
  ['pay_B', { amount: '49.00', currency: 'EUR' }],
]);
const refunds = new Map();

async function refund(idempotencyKey, payment) {
  if (!refunds.has(idempotencyKey)) refunds.set(idempotencyKey, { id: `re_${refunds.size + 1}`, payment });
  return refunds.get(idempotencyKey);
}

export default (holdfast) => {
  holdfast.onHandoff('refund-dispute/1', {
    check({ facts }) {
      const missing = [facts.payment_a.id, facts.payment_b.id].find((id) => !payments.has(id));
      if (missing === undefined) return { verdict: 'accept' };
      return { verdict: 'reject', code: 'records_disagree', reason: `There is no payment ${missing} here.` };
    },

    /** Runs again after a crash, until the work item is settled; an effect that was done is not done twice. */
    async work({ envelope, effect, done }) {
      const payment = envelope.facts.find(({ key }) => key === 'payment_b').value;
      const { row } = await effect({
        key: `refund-${payment.id}`,
        operation: 'refund',
        amount: { amount: payment.amount, currency: payment.currency },
        perform: (idempotencyKey) => refund(idempotencyKey, payment.id),
        outcome: ({ id }) => id,
        // After a crash: what the payment system knows of this key.
        reconcile: async (idempotencyKey) => {
          const earlier = refunds.get(idempotencyKey);
          return earlier ? { outcome: earlier.id } : 'not_done';
        },
      });
      await done({ decision: 'refunded', refund_id: row.outcome });
    },
  });
};
