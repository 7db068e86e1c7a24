import { problemsOf } from '../../src/audit/index.js';
import { actsFor, isHoldfastError, parsePerson } from '../../src/core/index.js';
import type { CaseSnapshot, DecisionRow, LedgerStore, OfferRow } from '../../src/ledger/index.js';
import { createMemoryLedger } from '../../src/storage/index.js';
import { TestClock } from '../storage/suite/fixtures.js';
import {
  type Crossing,
  PARTIES,
  Party,
  REF,
  SEPARATE,
  transferOf,
  WITHDRAWN,
} from '../storage/suite/parties.js';
import { checkDecisions, checkEpochs, checkProofs } from './separate-checks.js';
import { isOf, passOn, shortened, takeWithOpenOffer } from './separate-people.js';

/** What a node that is built wrongly does; each breaks what must always hold. */
export const MISTAKES = [
  'answers a rejection before it is stored',
  'goes on where the receiver has no record',
  'goes on when the deadline has passed',
  'leaves a tombstone that does not name the attempt',
  'starts effects while the outcome is in doubt',
  'inherits no effects',
  'answers an acceptance before it is stored',
  'takes a tombstone of one attempt for the next',
  'has two offers out at once',
  'takes a case over while its offer is open',
] as const;
export type Mistake = (typeof MISTAKES)[number];

type Message =
  | { readonly say: 'offer'; readonly crossing: Crossing }
  | { readonly say: 'withdraw' | 'query'; readonly crossing: Crossing }
  | { readonly say: 'answer'; readonly crossing: Crossing; readonly answer: Answer };

/** `null`: no decision stands. */
type Answer = Pick<DecisionRow, 'verdict' | 'code' | 'digest' | 'answer'> | null;

interface Sent {
  readonly to: string;
  readonly message: Message;
}

/** What the business system saw: one start of one effect, and whether it came to something there. */
interface Performed {
  readonly key: string;
  readonly by: string;
  readonly epoch: number;
  readonly happened: boolean;
}

const KEYS = ['r1', 'r2', 'r3'];
/** What may refuse an honest node, which then does nothing. */
const EXPECTED = [
  'offer_open',
  'offer_decided',
  'effect_in_flight',
  'effect_duplicate',
  'effect_settled',
  'effects_frozen',
  'cap_exceeded',
  'epoch_stale',
  'not_owner',
  'withdraw_needed',
];

/** Ledgers apart, each with its own clock, and a network that loses, repeats, delays and reorders what nodes say to each other. */
export class SeparateWorld {
  readonly #rng: () => number;
  readonly #mistake: Mistake | null;
  readonly #parties: readonly Party[];
  readonly #net: Sent[] = [];
  readonly #performed: Performed[] = [];
  /** The last offer of each party, as it crossed. */
  readonly #crossings = new Map<string, Crossing[]>();
  #before: readonly CaseSnapshot[] = [];
  readonly seen = new Set<string>();

  private constructor(rng: () => number, mistake: Mistake | null, parties: readonly Party[]) {
    this.#rng = rng;
    this.#mistake = mistake;
    this.#parties = parties;
  }

  static async open(
    rng: () => number,
    mistake: Mistake | null,
    open: (clock: TestClock) => Promise<LedgerStore> = async (clock) => createMemoryLedger({ clock }),
  ): Promise<SeparateWorld> {
    const parties: Party[] = [];
    for (const url of Object.values(PARTIES)) {
      const clock = new TestClock();
      const ledger = await open(clock);
      const operations = Object.fromEntries(Object.values(PARTIES).map((agent) => [agent, ['refund']]));
      const limits = { ...SEPARATE.limits, maxHops: 1000, maxTasks: 1000 };
      await ledger.putKind('acme', { ...SEPARATE, limits, policy: { ...SEPARATE.policy, operations } });
      parties.push(new Party(url, ledger, clock));
    }
    const [first] = parties as [Party];
    await first.ledger.openCase({ ref: REF, kind: 'dispute', owner: first.url, epoch: 1, actor: first.url });
    return new SeparateWorld(rng, mistake, parties);
  }

  /** One thing happens somewhere. @throws where something that must hold does not */
  async step(): Promise<void> {
    const party = this.#pick(this.#parties);
    const chance = this.#rng();
    if (chance < 0.45 && this.#net.length > 0) await this.#deliver();
    else if (chance < 0.57) await this.#tryOffer(party);
    else if (chance < 0.72) await this.#sayAgain(party);
    else if (chance < 0.81) await this.#effect(party);
    else if (chance < 0.85) party.clock.advance(Math.floor(this.#rng() * 70_000));
    else if (chance < 0.88) await this.#settle(party);
    else if (chance < 0.92) await this.#tolerate(() => passOn(party, this.#rng));
    else await this.#wrongly(party);
    await this.check();
  }

  /** Everything is heard from now on: no offer stays open, and there is one who can act. */
  async calm(): Promise<void> {
    this.#net.length = 0;
    for (let rounds = 0; rounds < 20; rounds += 1) {
      const open = await this.#openOffers();
      if (open.length === 0) break;
      for (const party of this.#parties) party.clock.advance(40_000);
      for (const [, crossing] of open) {
        this.#net.push({ to: crossing.offer.toAgent, message: { say: 'offer', crossing } });
        while (this.#net.length > 0) await this.#hear(this.#net.shift() as Sent);
      }
    }
    await this.check();
    const able = (await this.#snapshots()).filter((now, at) => this.#canAct(now, this.#parties[at] as Party));
    if (able.length !== 1) throw new Error(`${able.length} can act when all is calm`);
    for (const snapshot of await this.#snapshots()) {
      const problems = problemsOf(snapshot);
      if (problems.length > 0) throw new Error(`H8: ${problems.join('; ')}`);
    }
  }

  async check(): Promise<void> {
    const now = await this.#snapshots();
    for (const { ledger } of this.#parties) {
      if ((await ledger.listQuarantined('acme')).length > 0)
        throw new Error('H1: a receipt was contradicted');
    }
    const able = now.filter((snapshot, at) => this.#canAct(snapshot, this.#parties[at] as Party));
    if (able.length > 1) throw new Error('H1: two can start effects');
    checkEpochs(now, this.#before);
    checkDecisions(now, this.#before);
    checkProofs(
      now,
      this.#parties.map(({ url }) => url),
    );
    for (const { offers } of now) for (const { state } of offers) this.seen.add(state);
    for (const key of KEYS) {
      const times = this.#performed.filter((one) => one.key === key && one.happened).length;
      if (times > 1) throw new Error(`H5: ${key} happened ${times} times`);
    }
    this.#before = now;
  }

  #canAct(snapshot: CaseSnapshot, { url }: Party): boolean {
    const frozen = snapshot.offers.some((offer) => offer.closedAt === null);
    const wrongly =
      (this.#mistake === 'starts effects while the outcome is in doubt' && this.#inDoubt(snapshot)) ||
      (this.#mistake === 'takes a case over while its offer is open' && this.#isTaken(snapshot));
    return actsFor(snapshot.case?.owner ?? '') === url && (!frozen || wrongly);
  }

  #inDoubt(snapshot: CaseSnapshot): boolean {
    return snapshot.offers.some((offer) => offer.state === 'in_doubt');
  }

  #isTaken({ case: row, offers }: CaseSnapshot): boolean {
    return offers.some((offer) => offer.closedAt === null && offer.epoch < (row?.epoch ?? 0));
  }

  async #deliver(): Promise<void> {
    const at = Math.floor(this.#rng() * this.#net.length);
    const chance = this.#rng();
    const [sent] = chance < 0.25 ? [this.#net[at]] : this.#net.splice(at, 1);
    if (chance < 0.85) await this.#hear(sent as Sent);
  }

  async #hear({ to, message }: Sent): Promise<void> {
    const party = this.#parties.find(({ url }) => url === to) as Party;
    const { crossing } = message;
    if (message.say === 'answer') return this.#take(party, crossing, message.answer);
    const answer = await this.#tolerate(() => this.#answer(party, message));
    // A crash after the commit says nothing; neither does a lost answer.
    if (answer === undefined) return;
    this.#net.push({ to: crossing.offer.key.sender, message: { say: 'answer', crossing, answer } });
  }

  async #answer(
    party: Party,
    { say, crossing }: Exclude<Message, { say: 'answer' }>,
  ): Promise<Answer | undefined> {
    const { key } = crossing.offer;
    if (say === 'query') return party.ledger.findDecision(key);
    if (say === 'withdraw') return this.#answerWithdrawal(party, crossing);
    const standing = await party.ledger.findDecision(key);
    if (standing !== null) return standing;
    if (this.#rng() < 0.2) return this.#answerRejection(party, crossing, 'contract_refused');
    if (this.#mistake === 'answers an acceptance before it is stored' && this.#rng() < 0.3) {
      return { verdict: 'accepted', code: null, digest: crossing.offer.digest, answer: '' };
    }
    const effects = this.#mistake === 'inherits no effects' ? [] : crossing.effects;
    const result = await party.accept(crossing, { effects });
    if (result.outcome === 'refused') return this.#answerRejection(party, crossing, result.code);
    if (result.outcome === 'conflict') throw new Error('H4: the same key with other bytes');
    return result.decision;
  }

  async #answerRejection(party: Party, crossing: Crossing, code: string): Promise<Answer> {
    this.seen.add(code);
    if (this.#mistake === 'answers a rejection before it is stored') {
      return { verdict: 'rejected', code, digest: crossing.offer.digest, answer: '{}' };
    }
    const result = await party.reject(crossing, code);
    if (result.outcome === 'conflict') throw new Error('H4: the same key with other bytes');
    return result.decision;
  }

  async #answerWithdrawal(party: Party, crossing: Crossing): Promise<Answer> {
    if (this.#mistake === 'leaves a tombstone that does not name the attempt') {
      const standing = await party.ledger.findDecision(crossing.offer.key);
      if (standing !== null) return standing;
      const offer = { ...crossing.offer, key: { ...crossing.offer.key, attempt: 1 } };
      const { decision } = await party.withdraw({ ...crossing, offer });
      return decision.verdict === 'tombstone' ? decision : null;
    }
    const { decision } = await party.withdraw(crossing);
    return decision;
  }

  async #take(party: Party, crossing: Crossing, answer: Answer): Promise<void> {
    const { offer } = crossing;
    if (answer === null) {
      if (this.#mistake === 'goes on where the receiver has no record')
        await this.#closeWithoutProof(party, offer);
      return;
    }
    const { verdict, code, digest, answer: bytes } = answer;
    await this.#tolerate(async () => {
      if (verdict === 'accepted') await party.ledger.releaseOffer(transferOf(offer));
      else if (verdict === 'rejected')
        await party.close(crossing, { verdict, code: code ?? '', digest, answer: bytes });
      else
        await party.close(this.#tombstoned(party, crossing), { expired: this.#rng() < 0.5, answer: bytes });
    });
  }

  /** Which offer a tombstone closes: the one that it is for. */
  #tombstoned({ url }: Party, crossing: Crossing): Crossing {
    if (this.#mistake !== 'takes a tombstone of one attempt for the next') return crossing;
    return this.#crossings.get(url)?.at(-1) ?? crossing;
  }

  async #tryOffer(party: Party): Promise<void> {
    const row = await party.ledger.getCase(REF);
    if (!isOf(row, party)) return;
    const to = this.#pick(this.#parties.filter((one) => one !== party));
    const person = parsePerson(row.owner) === null ? undefined : row.owner;
    const approval = person === undefined ? {} : { approval: { person, digest: 'a'.repeat(64) } };
    const handoff = {
      tenant: REF.tenant,
      root: REF.root,
      sender: party.url,
      handoffId: `${REF.caseId}:${row.epoch + 1}`,
    };
    const attempt = (await party.ledger.lastAttempt(handoff)) + 1;
    await this.#tolerate(async () => {
      const whole = await party.offer(to, row.epoch, { attempt, ...approval });
      const crossing = this.#rng() < 0.5 ? { ...whole, provenance: shortened(whole.provenance) } : whole;
      if (person !== undefined) this.seen.add('by a person');
      this.#crossings.set(party.url, [...(this.#crossings.get(party.url) ?? []), crossing]);
      this.#net.push({ to: to.url, message: { say: 'offer', crossing } });
    });
  }

  /** What is open is offered again, asked after or withdrawn. */
  async #sayAgain(party: Party): Promise<void> {
    const crossing = (await this.#openOffers()).find(([owner]) => owner === party)?.[1];
    if (crossing === undefined) return;
    const say = this.#pick(['offer', 'query', 'withdraw', 'withdraw', 'withdraw'] as const);
    this.#net.push({ to: crossing.offer.toAgent, message: { say, crossing } });
    if (say === 'withdraw' && this.#rng() < 0.5) {
      await this.#tolerate(() => party.ledger.markInDoubt(crossing.offer.key));
    }
  }

  async #effect(party: Party): Promise<void> {
    const row = await party.ledger.getCase(REF);
    if (row === null || row.owner !== party.url) return;
    const key = this.#pick(KEYS);
    await this.#tolerate(async () => {
      const { epoch } = await party.start(row.epoch, key);
      await this.#perform(party, key, epoch);
    });
  }

  async #perform(party: Party, key: string, epoch: number): Promise<void> {
    const latest = Math.max(...(await this.#snapshots()).map((now) => now.case?.epoch ?? 0));
    if (latest > epoch) throw new Error(`H3: an effect of epoch ${epoch} began at epoch ${latest}`);
    this.#performed.push({ key, by: party.url, epoch, happened: this.#rng() < 0.7 });
  }

  /** What is found out about an effect: that it happened, that it did not, or nothing. */
  async #settle(party: Party): Promise<void> {
    const row = await party.ledger.getCase(REF);
    if (row === null || row.owner !== party.url) return;
    const effects = (await party.ledger.listEffects(REF)).filter(
      ({ state }) => state === 'started' || state === 'unknown',
    );
    if (effects.length === 0) return;
    const { key } = this.#pick(effects);
    const happened = this.#performed.some((one) => one.key === key && one.happened);
    const state = this.#rng() < 0.3 ? 'unknown' : happened ? 'done' : 'failed';
    await this.#tolerate(() => party.settle(row.epoch, key, state));
  }

  /** What only a node that is built wrongly does by itself. */
  async #wrongly(party: Party): Promise<void> {
    const crossing = (await this.#openOffers()).find(([owner]) => owner === party)?.[1];
    if (crossing === undefined) return;
    const { offer } = crossing;
    if (this.#mistake === 'has two offers out at once') this.#offerTwice(party, crossing);
    if (this.#mistake === 'takes a case over while its offer is open') {
      await this.#tolerate(() => takeWithOpenOffer(party, crossing));
    }
    const late = party.clock.now().getTime() > Date.parse(offer.acceptBy);
    if (this.#mistake === 'goes on when the deadline has passed' && late) {
      await this.#closeWithoutProof(party, offer);
    }
    if (this.#mistake === 'starts effects while the outcome is in doubt') {
      const doubtful = (await party.ledger.getOffer(offer.key))?.state === 'in_doubt';
      if (doubtful) await this.#perform(party, this.#pick(KEYS), offer.epoch);
    }
  }

  /** The same offer once more, to somebody else, of which its ledger knows nothing. */
  #offerTwice(party: Party, crossing: Crossing): void {
    const { key, toAgent } = crossing.offer;
    const to = this.#pick(this.#parties.filter(({ url }) => url !== party.url && url !== toAgent));
    const other = { ...key, attempt: key.attempt + 1000 };
    const offer = {
      ...crossing.offer,
      key: other,
      toAgent: to.url,
      digest: `${crossing.offer.digest} again`,
    };
    this.#net.push({ to: to.url, message: { say: 'offer', crossing: { ...crossing, offer } } });
  }

  async #closeWithoutProof(party: Party, { key }: OfferRow): Promise<void> {
    const tombstone = { verdict: 'tombstone', code: 'withdrawn', digest: null } as const;
    await this.#tolerate(() =>
      party.ledger.closeOffer({ key, ...tombstone, answer: WITHDRAWN, expired: true }),
    );
  }

  async #openOffers(): Promise<[Party, Crossing][]> {
    const open: [Party, Crossing][] = [];
    for (const party of this.#parties) {
      const crossing = this.#crossings.get(party.url)?.at(-1);
      const offer = crossing === undefined ? null : await party.ledger.getOffer(crossing.offer.key);
      if (crossing !== undefined && offer?.closedAt === null) open.push([party, crossing]);
    }
    return open;
  }

  async #tolerate<T>(act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      const isTwice = this.#mistake === 'has two offers out at once';
      const expected = isTwice ? [...EXPECTED, 'offer_unknown', 'case_quarantined'] : EXPECTED;
      if (!isHoldfastError(error) || !expected.includes(error.code)) throw error;
      this.seen.add(error.code);
      return undefined;
    }
  }

  #snapshots(): Promise<CaseSnapshot[]> {
    return Promise.all(this.#parties.map(({ ledger }) => ledger.snapshot(REF)));
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#rng() * list.length)] as T;
  }
}
