// What every program under fire hands over, and how it is delivered twice.

export const amount = { amount: '49.00', currency: 'EUR' };

const payment = (id, at) => ({ id, ...amount, method: 'card', created_at: at });

export function caseOf(caseId) {
  return {
    case_id: caseId,
    kind: 'refund',
    goal: 'refund duplicate charge',
    done: ['account verified'],
    remaining: ['issue refund'],
    facts: [
      { key: 'account_id', value: 'acct_881', source: 'auth', verified: true },
      ...[
        ['payment_a', payment('pay_A', '2026-01-01T10:00:00Z')],
        ['payment_b', payment('pay_B', '2026-01-01T10:00:40Z')],
      ].map(([key, value]) => ({ key, value, source: 'payments', verified: true })),
      { key: 'disputed_amount', value: amount, source: 'customer', verified: false },
    ],
    constraints: {
      deadline: '2099-01-01T00:00:00Z',
      caps: { refund: { amount: '100.00', currency: 'EUR' } },
    },
  };
}

/** As a network does that delivers twice. */
export async function deliverAgain(holdfast, peer, message) {
  await fetch(`${peer}/a2a`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await holdfast.identity.tokenFor(peer)}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message: JSON.parse(message) },
    }),
  }).catch(() => undefined);
}
