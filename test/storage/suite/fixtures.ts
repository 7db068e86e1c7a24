import { digestOf, handoffIdOf, newId, toUtc } from '../../../src/core/index.js';
import type {
  AcceptCommand,
  CaseRow,
  IntendOfferCommand,
  KindDefinition,
  LedgerStore,
  OfferRow,
  RejectCommand,
} from '../../../src/ledger/index.js';

const ROOT = 'https://triage.example';
export const TRIAGE = 'https://triage.example/agents/triage';
export const BILLING = 'https://billing.example/agents/billing';
export const LEGAL = 'https://legal.example/agents/legal';
const CONTRACT = 'refund-dispute/1';

/** A clock that stands still until it is told to move. */
export class TestClock {
  #now = Date.parse('2026-03-01T10:00:00.000Z');

  now(): Date {
    return new Date(this.#now);
  }

  advance(ms: number): void {
    this.#now += ms;
  }

  in(ms: number): string {
    return toUtc(new Date(this.#now + ms));
  }
}

export const KIND: KindDefinition = {
  kind: 'refund',
  systemOfRecord: 'billing database',
  mode: 'shared',
  contracts: [CONTRACT],
  policy: {
    caps: { refund: { amount: '100.00', currency: 'EUR' } },
    prohibitions: ['publish'],
    operations: { '*': ['refund', 'notify'], [TRIAGE]: ['notify', 'publish', 'refund'] },
  },
  limits: { maxHops: 2, maxTasks: 5, acceptWithinMs: 60_000, effectLimitMs: 30_000 },
};

export type OpenLedger = (clock: TestClock) => Promise<LedgerStore>;

export const ref = (caseId = 'CASE-1', tenant = 'acme') => ({ tenant, root: ROOT, caseId });

/** A ledger that knows the kind and holds one case of triage's. */
export async function ledgerWithCase(
  open: OpenLedger,
  epoch = 3,
): Promise<{ ledger: LedgerStore; clock: TestClock; row: CaseRow }> {
  const clock = new TestClock();
  const ledger = await open(clock);
  await ledger.putKind('acme', KIND);
  const row = await openCase(ledger, 'CASE-1', epoch);
  return { ledger, clock, row };
}

export function openCase(ledger: LedgerStore, caseId: string, epoch = 3): Promise<CaseRow> {
  return ledger.openCase({ ref: ref(caseId), kind: 'refund', owner: TRIAGE, epoch, actor: TRIAGE });
}

/** Stands for an envelope: the ledger sees bytes and a digest. */
function envelope(text = 'please refund'): { envelope: string; digest: string } {
  return { envelope: JSON.stringify({ goal: text }), digest: digestOf({ goal: text }) };
}

export function intend(
  clock: TestClock,
  over: Partial<IntendOfferCommand> & { text?: string } = {},
): IntendOfferCommand {
  const { text, ...rest } = over;
  const { envelope: message, digest } = envelope(text);
  return {
    ref: ref(),
    writer: TRIAGE,
    epoch: 3,
    attempt: 1,
    toAgent: BILLING,
    contract: CONTRACT,
    skill: 'refund-dispute',
    digest,
    message,
    acceptBy: clock.in(60_000),
    withheld: [{ path: 'facts.phone', rule: 'not_in_contract' }],
    loggable: { invoice_id: 'INV-77' },
    ...rest,
  };
}

const principalOf = (agent: string) => ({ agent, tenant: 'acme', tokenId: 'jti-1' });

function decisionTask(state: string, clock: TestClock) {
  return {
    id: newId('task'),
    contextId: 'ctx-1',
    state,
    statusAt: clock.in(0),
    task: `{"state":"${state}"}`,
  };
}

export type DeliveryOver = {
  text?: string;
  sender?: string;
  caseId?: string;
  epoch?: number;
  attempt?: number;
  tenant?: string;
};

/** What arrives at the receiver, whether or not an offer row stands behind it. */
export function delivery(over: DeliveryOver = {}) {
  const { text, sender = TRIAGE, caseId = 'CASE-1', epoch = 3, attempt = 1, tenant = 'acme' } = over;
  return {
    key: { tenant, root: ROOT, sender, handoffId: handoffIdOf(caseId, epoch), attempt },
    ref: ref(caseId, tenant),
    principal: { ...principalOf(sender), tenant },
    digest: envelope(text).digest,
  };
}

export function acceptance(
  clock: TestClock,
  over: DeliveryOver & Partial<AcceptCommand> = {},
): AcceptCommand {
  const { text, sender, caseId, epoch = 3, attempt, tenant, ...rest } = over;
  const given = Object.fromEntries(
    Object.entries({ text, sender, caseId, epoch, attempt, tenant }).filter(
      ([, value]) => value !== undefined,
    ),
  );
  return {
    ...delivery(given),
    kind: 'refund',
    toAgent: BILLING,
    epoch,
    contract: CONTRACT,
    acceptBy: clock.in(60_000),
    constraints: {
      caps: { refund: { amount: '50.00', currency: 'EUR' } },
      prohibitions: ['contact_customer'],
      operations: ['refund'],
    },
    hops: [TRIAGE],
    tasksLeft: 4,
    envelope: envelope(text).envelope,
    workId: newId('work'),
    answer: '{"receipt":"signed"}',
    task: decisionTask('TASK_STATE_COMPLETED', clock),
    loggable: { invoice_id: 'INV-77' },
    ...rest,
  };
}

export function rejection(
  clock: TestClock,
  code: string,
  over: DeliveryOver & Partial<RejectCommand> = {},
): RejectCommand {
  const { text, sender, caseId, epoch, attempt, tenant, ...rest } = over;
  const given = Object.fromEntries(
    Object.entries({ text, sender, caseId, epoch, attempt, tenant }).filter(
      ([, value]) => value !== undefined,
    ),
  );
  return {
    ...delivery(given),
    code,
    answer: `{"code":"${code}"}`,
    task: decisionTask('TASK_STATE_REJECTED', clock),
    data: {},
    ...rest,
  };
}

/** An offer on its way: intended and marked as offered. */
export async function offered(
  ledger: LedgerStore,
  clock: TestClock,
  over: Parameters<typeof intend>[1] = {},
): Promise<OfferRow> {
  const offer = await ledger.intendOffer(intend(clock, over));
  return ledger.markOffered(offer.key);
}

export async function handedOver(ledger: LedgerStore, clock: TestClock): Promise<OfferRow> {
  const offer = await offered(ledger, clock);
  const result = await ledger.accept(acceptance(clock));
  if (result.outcome !== 'accepted') throw new Error(`not accepted: ${result.outcome}`);
  return offer;
}

export const asTriage = { ref: ref(), writer: TRIAGE, epoch: 3 };
export const asBilling = { ref: ref(), writer: BILLING, epoch: 4 };
export const start = (key: string, amount: string | null = '49.00', operation = 'refund') => ({
  key,
  operation,
  amount: amount === null ? null : { amount, currency: 'EUR' },
});
