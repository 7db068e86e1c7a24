import { DEFAULT_LIMITS } from '../core/index.js';
import { type CaseFile, parseCaseFile } from '../envelope/index.js';
import {
  type Account,
  CASE_ID,
  KIND,
  PAYMENTS,
  type Payment,
  REFUND_CAP,
  type SourceRecord,
} from './fixture.js';

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
  const [first, second] = payments.map(({ id, amount, currency, method, created_at }) => ({
    id,
    amount,
    currency,
    method,
    created_at,
  }));
  const file = {
    case_id: record.case_id,
    kind: KIND,
    goal: 'refund duplicate charge',
    done: ['account verified', 'duplicates found'],
    remaining: ['decide on the refund', 'issue the refund'],
    open_questions: ['Is the second payment the duplicate, or a purchase of its own?'],
    facts: [
      { key: 'account_id', value: account.id, source: 'auth', verified: account.verified },
      { key: 'payment_a', value: first, source: 'payments', verified: true },
      { key: 'payment_b', value: second, source: 'payments', verified: true },
      { key: 'disputed_amount', value: record.claim, source: 'customer', verified: false },
      { key: 'customer_phone', value: record.customer_phone, source: 'crm', verified: true },
      { key: 'callback_token', value: record.callback_token, source: 'crm', verified: true },
    ],
    constraints: {
      deadline: new Date(now.getTime() + RESPONSE_TARGET_MS).toISOString(),
      caps: { refund: REFUND_CAP },
      prohibitions: ['goodwill_credit'],
    },
    internal_note: record.internal_note,
    transcript: record.transcript,
  };
  return parseCaseFile(Buffer.from(JSON.stringify(file)), DEFAULT_LIMITS);
}
