// What every program under fire hands over, how it is delivered twice, and what people do about offers that are not decided at once.

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

/** What people do where an offer is not decided at once. Whoever dies leaves it to the next process: it is to be called again and again. */
export async function answerAndDecide(holdfast) {
  await answerQuestions(holdfast);
  await acceptWaiting(holdfast);
}

/** What receivers of open offers ask is answered, to each the same. */
async function answerQuestions(holdfast) {
  const open = await holdfast.ledger.listOffers('default', { from: holdfast.url, open: true, limit: 100 });
  for (const { key } of open) {
    const task = await holdfast.ledger.getSentTask(key);
    if (task?.state !== 'TASK_STATE_INPUT_REQUIRED' || task.answer?.n === task.question?.n) continue;
    await holdfast.answerQuestion({ key, text: 'It came by the web.' });
  }
}

/** What a check left to a person, bob accepts. */
async function acceptWaiting(holdfast) {
  for (const { key } of await holdfast.listPending({ state: 'waiting' })) {
    await holdfast.acceptPending({ key, person: 'bob' });
  }
}
