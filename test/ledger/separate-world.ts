import { problemsOf } from '../../src/audit/index.js';
import { actsFor, isHoldfastError, parsePerson } from '../../src/core/index.js';
import type { CaseSnapshot, OfferRow } from '../../src/ledger/index.js';
import { type Crossing, PARTIES, REF, transferOf, WITHDRAWN } from '../storage/suite/parties.js';
import { inMemory, type OpenDisk } from './disks.js';
import { checkDecisions, checkEpochs, checkProofs, type Issued, idOf, type Lost } from './separate-checks.js';
import { Member } from './separate-member.js';
import type { Answer, Message, Mistake, Performed, Sent } from './separate-net.js';
import { isOf, passOn, shortened, takeWithOpenOffer } from './separate-people.js';
import { Restores } from './separate-restores.js';

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

/** What refuses one whose ledger, or whose peer's, was put back. */
const EXPECTED_THEN = [
  'peers_unanswered',
  'incarnation_superseded',
  'case_quarantined',
  'offer_unknown',
  'duplicate_conflict',
  'effect_unknown',
  'usage',
];

export interface WorldOptions {
  readonly mistake?: Mistake | null;
  readonly openDisk?: OpenDisk;
  /** Whether ledgers are put back to earlier states. */
  readonly restores?: boolean;
}

/** Ledgers apart, each with its own clock, and a network that loses, repeats, delays and reorders what nodes say to each other. */
export class SeparateWorld {
  readonly #rng: () => number;
  readonly #mistake: Mistake | null;
  readonly #parties: readonly Member[];
  readonly #net: Sent[] = [];
  readonly #performed: Performed[] = [];
  /** The offers of each party, as they crossed. */
  readonly #crossings = new Map<string, Crossing[]>();
  readonly #restores: Restores | null;
  readonly #lost: Lost;
  readonly #issued: Issued = new Map();
  #before: readonly CaseSnapshot[] = [];
  readonly seen = new Map<string, number>();

  private constructor(rng: () => number, parties: readonly Member[], options: WorldOptions) {
    const { mistake = null, restores = false } = options;
    this.#rng = rng;
    this.#mistake = mistake;
    this.#parties = parties;
    const world = new Restores({
      members: parties,
      rng,
      asksNobody: mistake === 'goes on with the epoch that it was put back to before its peers have answered',
      send: (sent) => this.#net.push(sent),
      acceptedUntil: () =>
        Math.max(0, ...[...this.#crossings.values()].flat().map(({ offer }) => Date.parse(offer.acceptBy))),
      performed: () => this.#performed,
      seen: (what) => this.#saw(what),
      tolerate: (act) => this.#tolerate(act),
    });
    this.#lost = world.lost;
    this.#restores = restores ? world : null;
  }

  static async open(rng: () => number, options: WorldOptions = {}): Promise<SeparateWorld> {
    const { openDisk = inMemory } = options;
    const parties: Member[] = [];
    for (const url of Object.values(PARTIES)) parties.push(await Member.open(url, openDisk));
    const [first] = parties as [Member];
    await first.ledger.openCase({ ref: REF, kind: 'dispute', owner: first.url, epoch: 1, actor: first.url });
    const world = new SeparateWorld(rng, parties, options);
    await world.#restores?.open();
    await world.#hearAll();
    return world;
  }

  /** One thing happens somewhere. @throws where something that must hold does not */
  async step(): Promise<void> {
    const party = this.#pick(this.#parties);
    const restored = (await this.#restores?.step(party)) ?? false;
    // What it knew before is no measure of what it has to know.
    if (restored === 'restored') this.#before = await this.#snapshots();
    if (restored === false) await this.#act(party);
    await this.check();
  }

  async #act(party: Member): Promise<void> {
    const chance = this.#rng();
    if (chance < 0.45 && this.#net.length > 0) await this.#deliver();
    else if (chance < 0.57) await this.#tryOffer(party);
    else if (chance < 0.72) await this.#sayAgain(party);
    else if (chance < 0.81) await this.#effect(party);
    else if (chance < 0.85) party.clock.advance(Math.floor(this.#rng() * 70_000));
    else if (chance < 0.88) await this.#settle(party);
    else if (chance < 0.92) await this.#tolerate(() => passOn(party, this.#rng));
    else await this.#wrongly(party);
  }

  /** Everything is heard from now on: no offer stays open, and there is one who can act. */
  async calm(): Promise<void> {
    this.#net.length = 0;
    await this.#quiet();
    if (this.#lost.transfers.size > 0) {
      // A receipt that came late is made known by the next start; what was lost for good, persons find out.
      await this.#restores?.beginAll();
      await this.#quiet();
      await this.#restores?.recover();
      await this.#quiet();
    }
    await this.check();
    const able = await this.#able();
    if (able.length !== 1) throw new Error(`${able.length} can act when all is calm`);
    for (const snapshot of await this.#snapshots()) {
      const problems = problemsOf(snapshot);
      if (problems.length > 0) throw new Error(`H8: ${problems.join('; ')}`);
    }
  }

  /** What is open is said again and answered, and what is asked as well. */
  async #quiet(): Promise<void> {
    for (let rounds = 0; rounds < 20; rounds += 1) {
      await this.#restores?.askAll();
      await this.#hearAll();
      const open = await this.#openOffers();
      if (open.length === 0) break;
      for (const party of this.#parties) party.clock.advance(40_000);
      for (const [{ run }, crossing] of open) {
        this.#net.push({ to: crossing.offer.toAgent, message: { say: 'offer', crossing, run } });
        await this.#hearAll();
      }
    }
  }

  async check(): Promise<void> {
    const now = await this.#snapshots();
    for (const party of this.#parties) {
      if (!(await party.isQuarantined())) continue;
      if (this.#lost.transfers.size === 0) throw new Error('H1: a receipt was contradicted');
      this.#saw('quarantined');
    }
    if ((await this.#able(now)).length > 1) throw new Error('H1: two can start effects');
    checkEpochs(now, this.#before, this.#issued, this.#lost);
    checkDecisions(now, this.#before, this.#lost);
    checkProofs(
      now,
      this.#parties.map(({ url }) => url),
      this.#lost,
    );
    for (const { offers } of now) for (const { state } of offers) this.#saw(state);
    for (const key of KEYS) {
      const times = this.#performed.filter((one) => one.key === key && one.happened).length;
      if (times > 1) throw new Error(`H5: ${key} happened ${times} times`);
    }
    this.#before = now;
  }

  /** Who would start an effect if it were asked to now. */
  async #able(now?: readonly CaseSnapshot[]): Promise<Member[]> {
    const snapshots = now ?? (await this.#snapshots());
    const able: Member[] = [];
    for (const [at, party] of this.#parties.entries()) {
      if (!this.#canAct(snapshots[at] as CaseSnapshot, party)) continue;
      if ((await party.awaits()).length === 0 && !(await party.isQuarantined())) able.push(party);
    }
    return able;
  }

  #canAct(snapshot: CaseSnapshot, { url }: Member): boolean {
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

  async #hearAll(): Promise<void> {
    while (this.#net.length > 0) await this.#hear(this.#net.shift() as Sent);
  }

  async #deliver(): Promise<void> {
    let at = Math.floor(this.#rng() * this.#net.length);
    if (this.#restores !== null && this.#rng() < 0.5) {
      // Who has begun anew does little else than ask.
      const asked = this.#net.findIndex(({ message: { say } }) => say === 'announce' || say === 'receipts');
      at = Math.max(at, asked);
    }
    const chance = this.#rng();
    const [sent] = chance < 0.25 ? [this.#net[at]] : this.#net.splice(at, 1);
    if (chance < 0.85) await this.#hear(sent as Sent);
  }

  async #hear({ to, message }: Sent): Promise<void> {
    const party = this.#parties.find(({ url }) => url === to) as Member;
    if (message.say === 'announce' || message.say === 'receipts') {
      return this.#restores?.hear(party, message);
    }
    const { crossing, run } = message;
    if (message.say === 'answer') {
      if (run === party.run) await this.#take(party, crossing, message.answer);
      return;
    }
    const answer = await this.#tolerate(() => this.#answer(party, message));
    // A crash after the commit says nothing; neither does a lost answer.
    if (answer === undefined) return;
    this.#net.push({ to: crossing.offer.key.sender, message: { say: 'answer', crossing, run, answer } });
  }

  async #answer(
    party: Member,
    { say, crossing }: Extract<Message, { say: 'offer' | 'withdraw' | 'query' }>,
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

  async #answerRejection(party: Member, crossing: Crossing, code: string): Promise<Answer> {
    this.#saw(code);
    if (this.#mistake === 'answers a rejection before it is stored') {
      return { verdict: 'rejected', code, digest: crossing.offer.digest, answer: '{}' };
    }
    const result = await party.reject(crossing, code);
    if (result.outcome === 'conflict') throw new Error('H4: the same key with other bytes');
    return result.decision;
  }

  async #answerWithdrawal(party: Member, crossing: Crossing): Promise<Answer> {
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

  async #take(party: Member, crossing: Crossing, answer: Answer): Promise<void> {
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
  #tombstoned({ url }: Member, crossing: Crossing): Crossing {
    if (this.#mistake !== 'takes a tombstone of one attempt for the next') return crossing;
    return this.#crossings.get(url)?.at(-1) ?? crossing;
  }

  async #tryOffer(party: Member): Promise<void> {
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
      const whole = await party.offer(to, row.epoch, { attempt, text: party.words(), ...approval });
      const provenance = this.#rng() < 0.5 ? shortened(whole.provenance) : whole.provenance;
      const crossing = { ...whole, provenance, ...(await party.made()) };
      if (person !== undefined) this.#saw('by a person');
      this.#crossings.set(party.url, [...(this.#crossings.get(party.url) ?? []), crossing]);
      this.#net.push({ to: to.url, message: { say: 'offer', crossing, run: party.run } });
    });
  }

  /** What is open is offered again, asked after or withdrawn. */
  async #sayAgain(party: Member): Promise<void> {
    const crossing = (await this.#openOffers()).find(([owner]) => owner === party)?.[1];
    if (crossing === undefined) return;
    const say = this.#pick(['offer', 'query', 'withdraw', 'withdraw', 'withdraw'] as const);
    this.#net.push({ to: crossing.offer.toAgent, message: { say, crossing, run: party.run } });
    if (say === 'withdraw' && this.#rng() < 0.5) {
      await this.#tolerate(() => party.ledger.markInDoubt(crossing.offer.key));
    }
  }

  async #effect(party: Member): Promise<void> {
    const row = await party.ledger.getCase(REF);
    if (row === null || row.owner !== party.url) return;
    const key = this.#pick(KEYS);
    await this.#tolerate(async () => {
      const { epoch } = await party.start(row.epoch, key);
      await this.#perform(party, key, epoch);
    });
  }

  async #perform(party: Member, key: string, epoch: number): Promise<void> {
    const latest = Math.max(...(await this.#snapshots()).map((now) => now.case?.epoch ?? 0));
    if (latest > epoch) throw new Error(`H3: an effect of epoch ${epoch} began at epoch ${latest}`);
    const again = this.#performed.some((one) => one.key === key && this.#lost.effects.has(one));
    // Where all ledgers have lost it, the business system knows the key, and does nothing.
    this.#performed.push({ key, by: party.url, epoch, happened: this.#rng() < 0.7 && !again });
  }

  /** What is found out about an effect: that it happened, that it did not, or nothing. */
  async #settle(party: Member): Promise<void> {
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
  async #wrongly(party: Member): Promise<void> {
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
  #offerTwice(party: Member, crossing: Crossing): void {
    const { key, toAgent } = crossing.offer;
    const to = this.#pick(this.#parties.filter(({ url }) => url !== party.url && url !== toAgent));
    const other = { ...key, attempt: key.attempt + 1000 };
    const offer = {
      ...crossing.offer,
      key: other,
      toAgent: to.url,
      digest: `${crossing.offer.digest} again`,
    };
    this.#net.push({
      to: to.url,
      message: { say: 'offer', crossing: { ...crossing, offer }, run: party.run },
    });
  }

  async #closeWithoutProof(party: Member, { key }: OfferRow): Promise<void> {
    const tombstone = { verdict: 'tombstone', code: 'withdrawn', digest: null } as const;
    await this.#tolerate(() =>
      party.ledger.closeOffer({ key, ...tombstone, answer: WITHDRAWN, expired: true }),
    );
  }

  async #openOffers(): Promise<[Member, Crossing][]> {
    const open: [Member, Crossing][] = [];
    for (const party of this.#parties) {
      const [offer] = await party.ledger.listOffers('acme', { from: party.url, open: true });
      const crossings = this.#crossings.get(party.url) ?? [];
      const crossing =
        offer &&
        crossings.find((one) => idOf(one.offer) === idOf(offer) && one.offer.digest === offer.digest);
      if (crossing !== undefined) open.push([party, crossing]);
    }
    return open;
  }

  async #tolerate<T>(act: () => Promise<T>): Promise<T | undefined> {
    try {
      return await act();
    } catch (error) {
      const isTwice = this.#mistake === 'has two offers out at once';
      const expected = isTwice || this.#restores !== null ? [...EXPECTED, ...EXPECTED_THEN] : EXPECTED;
      if (!isHoldfastError(error) || !expected.includes(error.code)) throw error;
      this.#saw(error.code);
      return undefined;
    }
  }

  #snapshots(): Promise<CaseSnapshot[]> {
    return Promise.all(this.#parties.map(({ ledger }) => ledger.snapshot(REF)));
  }

  #saw(what: string): void {
    this.seen.set(what, (this.seen.get(what) ?? 0) + 1);
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#rng() * list.length)] as T;
  }
}
