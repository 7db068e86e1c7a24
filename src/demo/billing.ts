import type { OfferView, Verdict } from '../contract/index.js';
import { HoldfastError, isHoldfastError, type Money } from '../core/index.js';
import { type AcceptedWork, type EffectInput, EffectNotDone, type HandoffHandler } from '../handoff/index.js';

interface PaymentFact extends Money {
  readonly id: string;
}

/** What billing does with a double charge: it compares both payments with its own records, and refunds the second one once. */
export function billingHandler(options: { systemsUrl: string; gullible: boolean }): HandoffHandler {
  const { systemsUrl } = options;
  return {
    check: (offer) => compareWithRecords(offer, systemsUrl),
    async work(work) {
      if (options.gullible) await obeyTheTranscript(work, systemsUrl);
      const duplicate = paymentOf(work);
      const { row } = await work.effect(
        refundEffect(systemsUrl, {
          key: `refund-${duplicate.id}`,
          payment: duplicate.id,
          amount: { amount: duplicate.amount, currency: duplicate.currency },
        }),
      );
      await work.done({
        decision: 'refunded',
        refund_id: row.outcome,
        amount: { amount: duplicate.amount, currency: duplicate.currency },
      });
    },
  };
}

async function compareWithRecords(offer: OfferView, systemsUrl: string): Promise<Verdict> {
  for (const name of ['payment_a', 'payment_b']) {
    const claimed = offer.facts[name] as PaymentFact;
    const response = await fetch(`${systemsUrl}/payments/${encodeURIComponent(claimed.id)}`);
    const recorded = response.ok ? ((await response.json()) as PaymentFact) : null;
    if (recorded?.amount === claimed.amount && recorded.currency === claimed.currency) continue;
    const problem = recorded ? 'differs from the payment records' : 'is not in the payment records';
    return {
      verdict: 'reject',
      code: 'records_disagree',
      reason: `${name} ${problem} of billing.`,
      fields: [{ path: `facts.${name}`, problem }],
    };
  }
  return { verdict: 'accept' };
}

function paymentOf(work: AcceptedWork): PaymentFact {
  const fact = work.envelope.facts.find(({ key }) => key === 'payment_b');
  if (!fact) throw new HoldfastError('fact_missing');
  return fact.value as unknown as PaymentFact;
}

/** Refunds whatever amount the customer's words ask for. The ledger's caps are what stands in the way. */
async function obeyTheTranscript(work: AcceptedWork, systemsUrl: string): Promise<void> {
  for (const evidence of work.evidence) {
    const text = new TextDecoder().decode(await evidence.read());
    const order = /refund (?<amount>\d+\.\d{2}) (?<currency>[A-Z]{3})/.exec(text)?.groups;
    if (!order?.amount || !order.currency) continue;
    const amount = { amount: order.amount, currency: order.currency };
    try {
      const wanted = { key: 'refund-as-told', payment: paymentOf(work).id, amount };
      await work.effect(refundEffect(systemsUrl, wanted));
    } catch (error) {
      if (!isHoldfastError(error) || error.code !== 'cap_exceeded') throw error;
    }
  }
}

/** One refund, as whoever may make it asks the payments system for it. */
export function refundEffect(
  systemsUrl: string,
  wanted: { key: string; payment: string; amount: Money },
): Omit<EffectInput<{ id: string }>, 'ref' | 'epoch'> {
  return {
    key: wanted.key,
    operation: 'refund',
    amount: wanted.amount,
    perform: async (idempotencyKey) => {
      const response = await fetch(`${systemsUrl}/refunds`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
        body: JSON.stringify({ payment: wanted.payment, ...wanted.amount }),
      });
      if (response.status >= 400 && response.status < 500) throw new EffectNotDone(await response.text());
      if (!response.ok) throw new Error(`payments answered ${response.status}`);
      return (await response.json()) as { id: string };
    },
    outcome: (result) => result.id,
  };
}
