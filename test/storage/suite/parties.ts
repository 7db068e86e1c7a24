import { problemsOf } from '../../../src/audit/index.js';
import { canonical, digestOf, handoffIdOf, newId, sha256Hex } from '../../../src/core/index.js';
import type {
  AcceptCommand,
  AcceptResult,
  Approval,
  InheritedEffect,
  LedgerStore,
  OfferRow,
  Transfer,
} from '../../../src/ledger/index.js';
import { isInside } from '../../../src/ledger/index.js';
import { createMemoryLedger } from '../../../src/storage/index.js';
import { KIND, type OpenLedger, TestClock } from './fixtures.js';

/** Three organisations, each an agent with a ledger of its own. Triage's is the root. */
export const PARTIES = {
  triage: 'https://triage.example',
  billing: 'https://billing.example',
  legal: 'https://legal.example',
} as const;
export type PartyName = keyof typeof PARTIES;
const [TENANT, KIND_NAME, CONTRACT] = ['acme', 'dispute', 'refund-dispute/1'];

export const SEPARATE = {
  ...KIND,
  kind: KIND_NAME,
  mode: 'separate' as const,
  policy: {
    ...KIND.policy,
    operations: { '*': ['refund'], [PARTIES.triage]: ['refund'], [PARTIES.billing]: ['refund'] },
  },
};
export const REF = { tenant: TENANT, root: PARTIES.triage, caseId: 'CASE-1' };

/** What an offer says, as it crosses; `effects` and `provenance` are those of the envelope. */
export interface Crossing {
  readonly offer: OfferRow;
  readonly effects: readonly InheritedEffect[];
  readonly provenance: readonly Transfer[];
  /** Under which it was made; the first one where absent. */
  readonly incarnation?: string;
  /** Of the person whose case it was. */
  readonly approval?: Approval;
}

type Over = Partial<AcceptCommand> & {
  readonly provenance?: readonly Transfer[];
  readonly effects?: readonly InheritedEffect[];
};

interface OfferOptions {
  readonly attempt?: number;
  readonly text?: string;
  readonly sent?: boolean;
  /** Where a person owns the case. */
  readonly approval?: Approval;
}

/** One organisation: its ledger, and what it can do to the case. */
export class Party {
  readonly url: string;
  readonly ledger: LedgerStore;
  readonly clock: TestClock;

  constructor(url: string, ledger: LedgerStore, clock: TestClock) {
    this.url = url;
    this.ledger = ledger;
    this.clock = clock;
  }

  at(epoch: number) {
    return { ref: REF, writer: this.url, epoch };
  }

  /** `intended`, and on its way if not told otherwise. */
  async offer(
    to: Party,
    epoch: number,
    { attempt = 1, text = 'please', sent = true, approval }: OfferOptions = {},
  ): Promise<Crossing> {
    const effects = await this.ledger.listEffects(REF);
    const provenance = await this.ledger.listTransfers(REF);
    const message = canonical({ text, to: to.url, epoch, attempt });
    const offer = await this.ledger.intendOffer({
      ...this.at(epoch),
      ...(approval === undefined ? {} : { writer: approval.person, approval }),
      attempt,
      toAgent: to.url,
      contract: CONTRACT,
      skill: 'refund-dispute',
      digest: sha256Hex(message),
      message,
      acceptBy: this.clock.in(60_000),
      effects,
      withheld: [],
      loggable: {},
    });
    if (sent) await this.ledger.markOffered(offer.key);
    return { offer, effects, provenance, ...(approval === undefined ? {} : { approval }) };
  }

  accept(crossing: Crossing, over: Over = {}): Promise<AcceptResult> {
    return this.ledger.accept(this.acceptance(crossing, over));
  }

  acceptance(
    { offer, effects, provenance, incarnation: made = 'inc_1', approval }: Crossing,
    over: Over = {},
  ): AcceptCommand {
    const { provenance: proofs = provenance, effects: listed = effects, ...rest } = over;
    const { receipt, receiptKey } = transferOf(offer);
    return {
      key: offer.key,
      ref: offer.ref,
      kind: KIND_NAME,
      toAgent: this.url,
      epoch: offer.epoch,
      digest: offer.digest,
      contract: offer.contract,
      acceptBy: offer.acceptBy,
      constraints: { caps: {}, prohibitions: [], operations: ['refund'] },
      hops: [...proofs.filter(isAcceptance).map(({ key }) => key.sender), offer.key.sender],
      tasksLeft: KIND.limits.maxTasks - proofs.filter(isAcceptance).length - 1,
      envelope: offer.message,
      workId: newId('work'),
      answer: JSON.stringify({ accepted: true, receipt }),
      task: {
        id: newId('task'),
        contextId: 'ctx',
        state: 'TASK_STATE_COMPLETED',
        statusAt: this.clock.in(0),
        task: '{}',
      },
      principal: principalOf(offer.key.sender),
      loggable: {},
      separate: { provenance: proofs, effects: listed, incarnation: made, receipt, receiptKey },
      ...(approval === undefined ? {} : { approval }),
      ...rest,
    };
  }

  async accepted(crossing: Crossing, over: Over = {}): Promise<Transfer> {
    const result = await this.accept(crossing, over);
    if (result.outcome !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(result)}`);
    return transferOf(crossing.offer);
  }

  /** `made`: under which incarnation of its sender, where that is looked at. */
  reject({ offer }: Crossing, code = 'fact_missing', made?: string | null) {
    const { key, ref, digest } = offer;
    const task = {
      id: newId('task'),
      contextId: 'ctx',
      state: 'TASK_STATE_REJECTED',
      statusAt: this.clock.in(0),
      task: '{}',
    };
    const answer = JSON.stringify({ accepted: false, code, final: true });
    return this.ledger.reject({
      key,
      ref,
      digest,
      code,
      answer,
      task,
      principal: principalOf(key.sender),
      data: {},
      ...(made === undefined ? {} : { from: { kind: KIND_NAME, toAgent: this.url, incarnation: made } }),
    });
  }

  withdraw({ offer }: Crossing, takeover?: Transfer) {
    const { key, ref } = offer;
    const principal = principalOf(key.sender);
    const told = takeover === undefined ? {} : { takeover };
    return this.ledger.withdraw({ key, ref, answer: WITHDRAWN, principal, toAgent: this.url, ...told });
  }

  close(
    { offer }: Crossing,
    over: Partial<Parameters<LedgerStore['closeOffer']>[0]> = {},
  ): Promise<OfferRow> {
    const { key } = offer;
    const tombstone = { verdict: 'tombstone', code: 'withdrawn', digest: null } as const;
    return this.ledger.closeOffer({ key, ...tombstone, answer: WITHDRAWN, expired: false, ...over });
  }

  start(epoch: number, key: string, amount = '10.00') {
    return this.ledger.startEffect({
      ...this.at(epoch),
      key,
      operation: 'refund',
      amount: { amount, currency: 'EUR' },
    });
  }

  settle(epoch: number, key: string, state: 'done' | 'failed' | 'unknown') {
    return this.ledger.settleEffect({ ...this.at(epoch), key, state, outcome: null });
  }

  async stands(): Promise<readonly [owner: string, epoch: number] | null> {
    const row = await this.ledger.getCase(REF);
    return row === null ? null : [row.owner, row.epoch];
  }
}

/** Of one agent from another: nothing that passed between an agent and its persons. */
const isAcceptance = (transfer: Transfer) => !isInside(transfer);

export const WITHDRAWN = JSON.stringify({ accepted: false, code: 'withdrawn', final: true });

const principalOf = (agent: string) => ({ agent, tenant: TENANT, tokenId: 'jti-1' });

/** What the receipt of this offer proves, as a sender that has verified it knows it. */
export function transferOf(offer: OfferRow, over: Partial<Transfer> = {}): Transfer {
  const { key, ref, toAgent, epoch, digest } = offer;
  const receipt = `receipt of ${key.handoffId}:${key.attempt} by ${toAgent}`;
  return {
    key,
    ref,
    toAgent,
    oldEpoch: epoch,
    newEpoch: epoch + 1,
    digest,
    receipt,
    receiptKey: '{"kty":"OKP"}',
    ...over,
  };
}

/** A change of owner that nobody here knows of. */
export function transfer(from: string, to: string, oldEpoch: number): Transfer {
  const key = {
    tenant: TENANT,
    root: REF.root,
    sender: from,
    handoffId: handoffIdOf(REF.caseId, oldEpoch),
    attempt: 1,
  };
  const receipt = `receipt of ${key.handoffId}:1 by ${to}`;
  return {
    key,
    ref: REF,
    toAgent: to,
    oldEpoch,
    newEpoch: oldEpoch + 1,
    digest: digestOf({ from, to, oldEpoch }),
    receipt,
    receiptKey: '{}',
  };
}

export interface World extends Readonly<Record<PartyName, Party>> {
  readonly clock: TestClock;
  /** Where a ledger says something else than its own audit. */
  problems(): Promise<string[]>;
}

/** The ledger under test has the seat of one of them; the others are models. Triage owns the case, at epoch 1. */
export async function worldOf(open: OpenLedger, seat: PartyName): Promise<World> {
  const clock = new TestClock();
  const party = async (name: PartyName): Promise<Party> => {
    const ledger = name === seat ? await open(clock) : createMemoryLedger({ clock });
    await ledger.putKind(TENANT, SEPARATE);
    return new Party(PARTIES[name], ledger, clock);
  };
  const parties = {
    triage: await party('triage'),
    billing: await party('billing'),
    legal: await party('legal'),
  };
  const { triage } = parties;
  await triage.ledger.openCase({ ref: REF, kind: KIND_NAME, owner: triage.url, epoch: 1, actor: triage.url });
  return {
    ...parties,
    clock,
    async problems() {
      const all = Object.values(parties).map(async ({ ledger }) => problemsOf(await ledger.snapshot(REF)));
      return (await Promise.all(all)).flat();
    },
  };
}
