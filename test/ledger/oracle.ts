/**
 * What the ledger should say, worked out from the words alone and without its rules: one case, three agents and their people, plain fields.
 * `expect…` methods predict an outcome and take it into account.
 */
export interface OracleOffer {
  /** The agent that sent it, which acts for the person who owned the case. */
  readonly sender: string;
  readonly person: string | null;
  readonly to: string;
  readonly epoch: number;
  readonly attempt: number;
  readonly text: string;
  readonly acceptBy: number;
  effectStarted: boolean;
}

export type OracleDelivery = Omit<OracleOffer, 'effectStarted'>;

export interface OracleDecision {
  readonly verdict: 'accepted' | 'rejected' | 'tombstone';
  readonly text: string | null;
}

interface OracleEffect {
  state: 'started' | 'done' | 'failed' | 'unknown';
  amount: number;
  limit: number;
  starter: string;
}

export const CAP = 100;
export const EFFECT_LIMIT_MS = 30_000;
export const FIRST_EPOCH = 3;

export class Oracle {
  now = 0;
  owner: string;
  epoch = FIRST_EPOCH;
  closed = false;
  offer: OracleOffer | null = null;
  notes = 0;
  /** Changes of owner without an acceptance. */
  changes = 0;
  /** Owner by epoch. */
  readonly owners: string[] = [];
  readonly attempts = new Map<string, number>();
  readonly decisions = new Map<string, OracleDecision>();
  readonly offers = new Map<string, OracleOffer>();
  readonly work: ('open' | 'done' | 'failed' | 'superseded')[] = [];
  readonly effects = new Map<string, OracleEffect>();

  constructor(owner: string) {
    this.owner = owner;
    this.owners[FIRST_EPOCH] = owner;
  }

  static key(sender: string, epoch: number, attempt: number): string {
    return `${sender}|${epoch}|${attempt}`;
  }

  next(sender: string, epoch: number): number {
    return (this.attempts.get(`${sender}|${epoch}`) ?? 0) + 1;
  }

  /** `ok`, or why this writer may not write at this epoch. */
  write(writer: string, epoch: number): string {
    if (epoch < this.epoch) return 'epoch_stale';
    if (epoch > this.epoch) return 'epoch_ahead';
    if (writer !== this.owner) return 'not_owner';
    return this.closed ? 'case_closed' : 'ok';
  }

  expectNote(writer: string, epoch: number): string {
    const verdict = this.write(writer, epoch);
    if (verdict === 'ok') this.notes += 1;
    return verdict;
  }

  expectOffer(offer: OracleOffer): string {
    const verdict = this.write(offer.person ?? offer.sender, offer.epoch);
    if (verdict !== 'ok') return verdict;
    if (this.offer !== null) return 'offer_open';
    if (this.flying()) return 'effect_in_flight';
    this.offer = offer;
    this.offers.set(Oracle.key(offer.sender, offer.epoch, offer.attempt), offer);
    this.used(offer.sender, offer.epoch, offer.attempt);
    return 'ok';
  }

  expectAccept({ sender, person, epoch, attempt, text, to, acceptBy: by }: OracleDelivery): string {
    const standing = this.standing(sender, epoch, attempt, text);
    if (standing !== null) return standing;
    if (this.closed) return 'case_closed';
    if (epoch !== this.epoch) return epoch < this.epoch ? 'epoch_stale' : 'epoch_ahead';
    if ((person ?? sender) !== this.owner) return 'not_owner';
    const mine = this.offer !== null && this.offer.sender === sender && this.offer.attempt === attempt;
    if (this.offer !== null && !mine) return 'offer_closed';
    if (this.now > by) return 'offer_expired';
    if (this.flying()) return 'effect_in_flight';
    if (this.offer?.effectStarted) return 'case_changed';
    this.decide(sender, epoch, attempt, { verdict: 'accepted', text });
    this.move(to);
    this.work.push('open');
    return 'accepted';
  }

  expectReject(sender: string, epoch: number, attempt: number, text: string): string {
    const standing = this.standing(sender, epoch, attempt, text);
    if (standing !== null) return standing;
    this.decide(sender, epoch, attempt, { verdict: 'rejected', text });
    return 'stored';
  }

  expectVoid(writer: string, sender: string, epoch: number, attempt: number): string {
    const key = Oracle.key(sender, epoch, attempt);
    if (!this.offers.has(key)) return 'offer_unknown';
    if (writer !== sender) return 'not_owner';
    if (this.decisions.has(key)) return 'decided';
    this.decide(sender, epoch, attempt, { verdict: 'tombstone', text: null });
    return 'stored';
  }

  /** `from`: whose case it has to be for this change; `node`: whose operator says so. */
  expectChange(from: string, node: string, to: string, epoch: number, seen: OracleOffer | null): string {
    if (this.closed) return 'case_closed';
    const verdict = this.write(from, epoch);
    if (verdict !== 'ok') return verdict;
    if (node !== Oracle.nodeOf(this.owner)) return 'not_owner';
    if (to === this.owner) return 'usage';
    if (this.flying()) return 'effect_in_flight';
    if (this.offer !== null && this.offer !== seen) return 'offer_open';
    if (this.offer !== null) {
      const { sender, epoch: offered, attempt } = this.offer;
      this.decide(sender, offered, attempt, { verdict: 'tombstone', text: null });
    }
    this.changes += 1;
    this.move(to);
    return 'ok';
  }

  static nodeOf(owner: string): string {
    return owner.replace(/^person:[^@]*@/, '');
  }

  expectStart(writer: string, epoch: number, key: string, amount: number): string {
    const verdict = this.write(writer, epoch);
    if (verdict !== 'ok') return verdict;
    const before = this.effects.get(key);
    if (before !== undefined && before.state !== 'failed') return 'effect_duplicate';
    const others = [...this.effects.values()].filter((effect) => effect.state !== 'failed');
    if (others.reduce((sum, effect) => sum + effect.amount, amount) > CAP) return 'cap_exceeded';
    this.effects.set(key, { state: 'started', amount, limit: this.now + EFFECT_LIMIT_MS, starter: writer });
    if (this.offer !== null) this.offer.effectStarted = true;
    return 'ok';
  }

  expectSettle(writer: string, epoch: number, key: string, state: 'done' | 'failed' | 'unknown'): string {
    const verdict = this.write(writer, epoch);
    if (verdict !== 'ok') return verdict;
    const effect = this.effects.get(key);
    if (effect === undefined) return 'effect_unknown';
    if (effect.state === state) return 'ok';
    if (effect.state === 'done' || effect.state === 'failed') return 'effect_settled';
    effect.state = state;
    return 'ok';
  }

  expectWork(writer: string, epoch: number, index: number, state: 'done' | 'failed'): string {
    const verdict = this.write(writer, epoch);
    if (verdict !== 'ok') return verdict;
    if (this.work[index] === state) return 'ok';
    if (this.work[index] !== 'open') return 'work_settled';
    this.work[index] = state;
    return 'ok';
  }

  expectClose(writer: string, epoch: number): string {
    const verdict = this.write(writer, epoch);
    if (verdict !== 'ok') return verdict;
    const unsettled = [...this.effects.values()].some(
      ({ state }) => state === 'started' || state === 'unknown',
    );
    if (this.offer !== null || this.work.includes('open') || unsettled) return 'case_busy';
    this.closed = true;
    return 'ok';
  }

  private move(to: string): void {
    this.owner = to;
    this.epoch += 1;
    this.owners[this.epoch] = to;
    const open = this.work.indexOf('open');
    if (open >= 0) this.work[open] = 'superseded';
  }

  private standing(sender: string, epoch: number, attempt: number, text: string): string | null {
    const key = Oracle.key(sender, epoch, attempt);
    const decision = this.decisions.get(key);
    if (decision !== undefined)
      return decision.text === null || decision.text === text ? 'decided' : 'conflict';
    const offer = this.offers.get(key);
    return offer !== undefined && offer.text !== text ? 'conflict' : null;
  }

  private decide(sender: string, epoch: number, attempt: number, decision: OracleDecision): void {
    this.decisions.set(Oracle.key(sender, epoch, attempt), decision);
    this.used(sender, epoch, attempt);
    if (this.offer?.sender === sender && this.offer.epoch === epoch && this.offer.attempt === attempt) {
      this.offer = null;
    }
  }

  private used(sender: string, epoch: number, attempt: number): void {
    const handoff = `${sender}|${epoch}`;
    this.attempts.set(handoff, Math.max(attempt, this.attempts.get(handoff) ?? 0));
  }

  private flying(): boolean {
    return [...this.effects.values()].some((effect) => effect.state === 'started' && this.now < effect.limit);
  }
}
