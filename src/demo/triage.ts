import type { JsonValue } from '../core/index.js';
import type { CaseFile } from '../envelope/index.js';
import { type Account, CASE_ID, KIND, PAYMENTS, type Payment, REFUND_CAP, type SourceRecord } from './fixture.js';

/** What triage reads from the systems it works with. */
export interface TriageFindings {
  readonly record: SourceRecord;
  readonly account: Account;
  readonly payments: readonly Payment[];
}

const RESPONSE_TARGET_MS = 48 * 3_600_000;

export async function readSystems(systemsUrl: string): Promise<TriageFindings> {
  const record = await read<SourceRecord>(systemsUrl, `cases/${CASE_ID}`);
  const account = await read<Account>(systemsUrl, `accounts/${record.account}`);
  const payments = await Promise.all(PAYMENTS.map(({ id }) => read<Payment>(systemsUrl, `payments/${id}`)));
  return { record, account, payments };
}

async function read<T>(systemsUrl: string, path: string): Promise<T> {
  const response = await fetch(`${systemsUrl}/${path}`);
  if (!response.ok) throw new Error(`${path} answered ${response.status}`);
  return (await response.json()) as T;
}

/**
 * The case as triage keeps it, with more in it than billing may have: what leaves is the contract's decision, not that of whoever
 * fills this in.
 */
export function caseFileOf({ record, account, payments }: TriageFindings, now: Date): CaseFile {
  const payment = (id: string): JsonValue => {
    const found = payments.find((each) => each.id === id);
    if (!found) throw new Error(`triage has no payment ${id}`);
    const { amount, currency, method, created_at } = found;
    return { id, amount, currency, method, created_at };
  };
  return {
    case_id: record.case_id,
    kind: KIND,
    goal: 'refund duplicate charge',
    done: ['account verified', 'duplicates found'],
    remaining: ['decide on the refund', 'issue the refund'],
    open_questions: ['Is pay_B the duplicate, or a second purchase?'],
    facts: [
      { key: 'account_id', value: account.id, source: 'auth', verified: account.verified },
      { key: 'payment_a', value: payment('pay_A'), source: 'payments', verified: true },
      { key: 'payment_b', value: payment('pay_B'), source: 'payments', verified: true },
      { key: 'disputed_amount', value: { ...record.claim }, source: 'customer', verified: false },
      { key: 'customer_phone', value: record.customer_phone, source: 'crm', verified: true },
      { key: 'internal_note', value: record.internal_note, source: 'triage', verified: false },
      { key: 'callback_token', value: record.callback_token, source: 'crm', verified: true },
    ],
    constraints: {
      deadline: new Date(now.getTime() + RESPONSE_TARGET_MS).toISOString(),
      caps: { refund: { ...REFUND_CAP } },
      prohibitions: [],
    },
  };
}
