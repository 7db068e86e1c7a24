const payment = (id: string, at: string) => ({
  id,
  amount: '49.00',
  currency: 'EUR',
  method: 'card',
  created_at: at,
});

/** What `refund-dispute/1` asks to know of a double charge. */
export function refundFacts() {
  return [
    { key: 'account_id', value: 'acct_881', source: 'auth', verified: true },
    {
      key: 'payment_a',
      value: payment('pay_A', '2026-01-31T10:00:00Z'),
      source: 'payments',
      verified: true,
    },
    {
      key: 'payment_b',
      value: payment('pay_B', '2026-01-31T10:00:40Z'),
      source: 'payments',
      verified: true,
    },
    {
      key: 'disputed_amount',
      value: { amount: '49.00', currency: 'EUR' },
      source: 'customer',
      verified: false,
      observed_at: '2026-01-31T10:05:00.000Z',
    },
  ];
}
