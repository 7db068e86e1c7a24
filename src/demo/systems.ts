import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { compareAmounts } from '../core/index.js';
import { ACCOUNT, CASE_ID, PAYMENTS, type Payment, type SourceRecord } from './fixture.js';
import { listenOnLoopback, readBody, stopServer } from './http.js';

/** One effect that somebody tried to have on a business system, whatever came of it. */
export interface Attempt {
  readonly system: 'payments' | 'cases';
  readonly operation: 'refund' | 'note';
  /** The idempotency key it came with. */
  readonly key: string | null;
  readonly amount: string | null;
  readonly currency: string | null;
  readonly outcome: 'done' | 'repeated' | 'refused';
}

interface Refund {
  readonly id: string;
  readonly payment: string;
  readonly amount: string;
  readonly currency: string;
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const NOT_FOUND: Answer = { status: 404, body: { error: 'not found' } };

/**
 * Authentication, payments and the case system of one company behind one loopback port: the systems that stay the user's own.
 * They know nothing of Holdfast; that is what makes their list of attempts a witness.
 */
export class BusinessSystems {
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #record: SourceRecord;
  readonly #payments = new Map<string, Payment>(PAYMENTS.map((payment) => [payment.id, payment]));
  readonly #refunds = new Map<string, Refund>();
  readonly #attempts: Attempt[] = [];
  #url = '';

  constructor(record: SourceRecord) {
    this.#record = record;
  }

  get url(): string {
    return this.#url;
  }

  /** Every effect tried so far, refused and repeated ones included. */
  attempts(): readonly Attempt[] {
    return [...this.#attempts];
  }

  forgetPayment(id: string): void {
    this.#payments.delete(id);
  }

  /** Brings back a payment of the fixture. */
  restorePayment(id: string): void {
    const payment = PAYMENTS.find((known) => known.id === id);
    if (payment) this.#payments.set(id, payment);
  }

  async start(): Promise<void> {
    this.#url = `http://127.0.0.1:${await listenOnLoopback(this.#server)}`;
  }

  stop(): Promise<void> {
    return stopServer(this.#server);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: Answer;
    try {
      answer = this.#answer(request, await readBody(request));
    } catch {
      answer = { status: 400, body: { error: 'not a request this system reads' } };
    }
    response.writeHead(answer.status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer.body));
  }

  #answer(request: IncomingMessage, body: Buffer): Answer {
    const { pathname } = new URL(request.url ?? '/', 'http://systems.invalid');
    const [, collection, id, sub] = pathname.split('/');
    if (request.method === 'POST') {
      const input = JSON.parse(body.toString('utf8')) as Record<string, unknown>;
      if (pathname === '/refunds') return this.#refund(headerOf(request, 'idempotency-key'), input);
      if (collection === 'cases' && sub === 'notes') return this.#note(id);
      return NOT_FOUND;
    }
    if (collection === 'accounts') return id === ACCOUNT.id ? { status: 200, body: ACCOUNT } : NOT_FOUND;
    if (collection === 'cases') return id === CASE_ID ? { status: 200, body: this.#record } : NOT_FOUND;
    if (collection === 'payments') {
      const payment = this.#payments.get(id ?? '');
      return payment ? { status: 200, body: payment } : NOT_FOUND;
    }
    return NOT_FOUND;
  }

  /** One refund per key: the same request again gets the same refund, another request under the key is refused. */
  #refund(key: string | null, input: Record<string, unknown>): Answer {
    const { payment: paymentId, amount, currency } = input;
    const attempt = (outcome: Attempt['outcome'], status: number, body: unknown): Answer => {
      this.#attempts.push({
        system: 'payments',
        operation: 'refund',
        key,
        amount: typeof amount === 'string' ? amount : null,
        currency: typeof currency === 'string' ? currency : null,
        outcome,
      });
      return { status, body };
    };
    const refuse = (status: number, error: string) => attempt('refused', status, { error });

    if (key === null) return refuse(400, 'an idempotency key is required');
    const payment = typeof paymentId === 'string' ? this.#payments.get(paymentId) : undefined;
    if (!payment || typeof amount !== 'string' || typeof currency !== 'string') {
      return refuse(404, 'no such payment');
    }
    const before = this.#refunds.get(key);
    if (before) {
      const same = before.payment === payment.id && before.amount === amount && before.currency === currency;
      return same ? attempt('repeated', 200, before) : refuse(409, 'the key was used for another refund');
    }
    if (currency !== payment.currency || compareAmounts(amount, payment.amount) > 0) {
      return refuse(422, 'more than was paid');
    }
    if ([...this.#refunds.values()].some((refund) => refund.payment === payment.id)) {
      return refuse(409, 'already refunded');
    }
    const refund = { id: `re_${this.#refunds.size + 1}`, payment: payment.id, amount, currency };
    this.#refunds.set(key, refund);
    return attempt('done', 201, refund);
  }

  #note(caseId: string | undefined): Answer {
    const known = caseId === CASE_ID;
    this.#attempts.push({
      system: 'cases',
      operation: 'note',
      key: null,
      amount: null,
      currency: null,
      outcome: known ? 'done' : 'refused',
    });
    return known ? { status: 201, body: { case_id: CASE_ID } } : NOT_FOUND;
  }
}

function headerOf(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value : null;
}
