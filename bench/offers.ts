import type { AcceptCommand, KindDefinition, LedgerStore } from '../src/ledger/index.js';
import { benchContract, core, envelope as envelopes } from './built.js';
import { drive } from './measure.js';

export const TENANT = 'default';
export const CONTRACT = 'double-charge/1';
export const SKILL = 'billing';
export const KIND = 'refund';

/** The same kind as a node's configuration names it, and as the ledger keeps it. */
export const kindConfig = {
  system_of_record: 'payments',
  contracts: [CONTRACT],
  policy: { caps: { refund: '100.00 EUR' }, operations: { '*': ['refund'] } },
};
const kindDefinition: KindDefinition = {
  kind: KIND,
  systemOfRecord: 'payments',
  mode: 'shared',
  contracts: [CONTRACT],
  policy: {
    caps: { refund: { amount: '100.00', currency: 'EUR' } },
    prohibitions: [],
    operations: { '*': ['refund'] },
  },
  limits: { maxHops: 2, maxTasks: 5, acceptWithinMs: 3_600_000, effectLimitMs: 300_000 },
};

/** One offer that a ledger holds and nobody has decided. */
export interface PreparedOffer {
  readonly ref: AcceptCommand['ref'];
  readonly key: AcceptCommand['key'];
  readonly canonical: string;
  readonly digest: string;
  readonly message: string;
  readonly acceptBy: string;
}

export interface Parties {
  readonly sender: string;
  readonly receiver: string;
}

const registry = envelopes.createEnvelopeRegistry([envelopes.envelopeV2]);

function paymentOf(id: string, createdAt: string) {
  return { id, amount: '49.00', currency: 'EUR', method: 'card', created_at: createdAt };
}

/** What the sender's agent knows of the case; its envelope has about 2 KB. */
export function caseFileOf(caseId: string) {
  return {
    case_id: caseId,
    kind: KIND,
    goal: 'Refund one of two identical charges',
    done: ["Customer's account verified", 'Two charges of 49.00 EUR found, 40 seconds apart'],
    remaining: ['Decide on the refund', 'Issue it'],
    facts: [
      { key: 'account_id', value: 'acct_881', source: 'auth', verified: true },
      {
        key: 'payment_a',
        value: paymentOf('pay_A', '2026-03-02T10:00:00Z'),
        source: 'payments',
        verified: true,
        observed_at: '2026-03-02T10:11:00Z',
      },
      {
        key: 'payment_b',
        value: paymentOf('pay_B', '2026-03-02T10:00:40Z'),
        source: 'payments',
        verified: true,
        observed_at: '2026-03-02T10:11:00Z',
      },
      {
        key: 'disputed_amount',
        value: { amount: '49.00', currency: 'EUR' },
        source: 'customer',
        verified: false,
      },
      { key: 'reason', value: 'duplicate_charge', source: 'customer', verified: false },
    ],
    open_questions: ['Did the customer press the button twice?'],
    constraints: {
      deadline: '2099-03-04T10:11:00Z',
      caps: { refund: { amount: '100.00', currency: 'EUR' } },
    },
  };
}

async function template({ sender, receiver }: Parties, incarnation: string, acceptBy: string) {
  const { envelope } = await envelopes.buildEnvelope({
    contract: benchContract,
    caseFile: envelopes.checkCaseFile(caseFileOf('TEMPLATE')),
    root: sender,
    incarnation,
    handoff_id: 'TEMPLATE:2',
    attempt: 1,
    from_agent: sender,
    to_agent: receiver,
    epoch: 1,
    references: [],
    effects: [],
    accept_by: acceptBy,
    chain: { hops: [sender], tasks_left: 5 },
    traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  });
  return envelope;
}

/**
 * Opens `count` cases and commits an offer for each, as a sender would just before it sends. `prefix` keeps the cases of several
 * fillings apart.
 */
export async function prepareOffers(
  ledger: LedgerStore,
  parties: Parties,
  count: number,
  prefix = 'CASE',
): Promise<PreparedOffer[]> {
  const { sender, receiver } = parties;
  await ledger.putKind(TENANT, kindDefinition);
  const acceptBy = core.toUtc(new Date(Date.now() + 3 * 3_600_000));
  const pattern = await template(parties, await ledger.incarnation(), acceptBy);
  const offers: PreparedOffer[] = [];
  await drive(64, { maxCount: count, maxMs: 600_000 }, async (index) => {
    const caseId = `${prefix}-${index}`;
    const ref = { tenant: TENANT, root: sender, caseId };
    const handoffId = core.handoffIdOf(caseId, 1);
    const envelope = { ...pattern, case_id: caseId, handoff_id: handoffId };
    const canonical = core.canonical(envelope);
    const digest = core.sha256Hex(canonical);
    const message = JSON.stringify(envelopes.buildOfferMessage({ envelope, canonical }, registry));
    await ledger.openCase({ ref, kind: KIND, owner: sender, epoch: 1, actor: sender });
    const { key } = await ledger.intendOffer({
      ref,
      writer: sender,
      epoch: 1,
      attempt: 1,
      toAgent: receiver,
      contract: CONTRACT,
      skill: SKILL,
      digest,
      message,
      acceptBy,
      effects: [],
      withheld: [],
      loggable: {},
    });
    await ledger.markOffered(key);
    offers.push({ ref, key, canonical, digest, message, acceptBy });
  });
  return offers;
}

const RECEIPT = `${'e'.repeat(120)}.${'r'.repeat(620)}.${'s'.repeat(86)}`;

/** What the receiver hands to the ledger once an offer has passed every check; the receipt is as long as a real one. */
export function acceptCommandOf(offer: PreparedOffer, { sender, receiver }: Parties): AcceptCommand {
  const { ref, key, canonical, digest, acceptBy } = offer;
  const workId = core.newId('work');
  const answer = JSON.stringify({
    accepted: true,
    root: ref.root,
    case_id: ref.caseId,
    handoff_id: key.handoffId,
    attempt: 1,
    epoch: 2,
    work_item: workId,
    receipt: RECEIPT,
  });
  const statusAt = core.toUtc(new Date());
  const task = {
    id: core.newId('task'),
    contextId: core.newId('ctx'),
    state: 'TASK_STATE_COMPLETED',
    statusAt,
  };
  return {
    key,
    ref,
    kind: KIND,
    toAgent: receiver,
    epoch: 1,
    digest,
    contract: CONTRACT,
    acceptBy,
    constraints: {
      caps: { refund: { amount: '100.00', currency: 'EUR' } },
      prohibitions: [],
      operations: ['refund'],
    },
    hops: [sender],
    tasksLeft: 4,
    envelope: canonical,
    workId,
    answer,
    task: { ...task, task: JSON.stringify({ ...task, artifacts: [{ parts: [{ data: answer }] }] }) },
    principal: { agent: sender, tenant: TENANT, tokenId: 'jwt_0' },
    loggable: {},
  };
}
