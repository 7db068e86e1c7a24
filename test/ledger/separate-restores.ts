import { actsFor } from '../../src/core/index.js';
import { attemptName, type CaseSnapshot, type Quarantine, type Transfer } from '../../src/ledger/index.js';
import { REF, WITHDRAWN } from '../storage/suite/parties.js';
import { personOf } from '../storage/suite/takeovers.js';
import { idOf, type Lost, lostBy, nameOf } from './separate-checks.js';
import type { Member } from './separate-member.js';
import type { Announcement, Performed, Receipts, Sent } from './separate-net.js';

/** Receipts in one answer: few, so that there is a next page. */
const PAGE = 2;
const HOUR_MS = 3_600_000;

export interface RestoresOptions {
  readonly members: readonly Member[];
  readonly rng: () => number;
  /** A node that is built wrongly asks nobody after it was put back. */
  readonly asksNobody: boolean;
  send(sent: Sent): void;
  /** The latest time until which any offer could still be accepted, milliseconds. */
  acceptedUntil(): number;
  /** What reached the business systems. */
  performed(): readonly Performed[];
  seen(what: string): void;
  tolerate<T>(act: () => Promise<T>): Promise<T | undefined>;
}

/** Ledgers that are put back to an earlier state, with all that is on their disk; processes that begin anew; and what they ask their peers then. */
export class Restores {
  readonly #options: RestoresOptions;
  /** What others could prove when a member began its present run, and with how many runs of theirs. */
  readonly #provable = new Map<
    Member,
    { readonly by: Member; readonly run: number; readonly transfer: Transfer }[]
  >();
  /** Put back, and not yet answered by all. */
  readonly #unsettled = new Set<Member>();
  readonly lost: Lost = {
    transfers: new Map(),
    decisions: new Set(),
    attempts: new Set(),
    effects: new Set(),
  };

  constructor(options: RestoresOptions) {
    this.#options = options;
  }

  /** Each begins for the first time. */
  async open(): Promise<void> {
    for (const member of this.#options.members) await this.#begin(member);
  }

  /** Whether anything of the kind has happened. */
  async step(member: Member): Promise<'restored' | boolean> {
    const { rng } = this.#options;
    const chance = rng();
    if (chance < 0.06) await member.keep();
    else if (chance < 0.085 && (await this.#mayRestore(member))) await this.#restore(member);
    else if (chance < 0.09) await this.#begin(member);
    else if (chance < 0.15 && (await member.awaits()).length > 0) await this.#ask(member);
    else return false;
    return chance >= 0.06 && chance < 0.085 ? 'restored' : true;
  }

  /** Two that lose the same time can prove nothing to each other: one is put back once the other has heard everybody. */
  async #mayRestore(member: Member): Promise<boolean> {
    for (const other of this.#unsettled) {
      if ((await other.awaits()).length === 0) this.#unsettled.delete(other);
    }
    return member.kept > 0 && [...this.#unsettled].every((other) => other === member);
  }

  async #restore(member: Member): Promise<void> {
    const { rng, asksNobody, seen, acceptedUntil, members } = this.#options;
    if ((await member.awaits()).length > 0) seen('restored again before all have answered');
    const before = await member.ledger.snapshot(REF);
    await member.putBack(Math.floor(rng() * member.kept));
    // It is kept down until no offer that it may have closed could be accepted.
    const ahead = acceptedUntil() - member.clock.now().getTime() + 1;
    member.clock.advance(Math.max(0, ahead) + Math.floor(rng() * 3) * HOUR_MS);
    await this.#note(member, before, await member.ledger.snapshot(REF));
    seen('restored');
    this.#unsettled.add(member);
    if (asksNobody) {
      await member.begin([]);
      this.#provable.delete(member);
    } else await this.#begin(member, members);
  }

  /** What was there and is not any more. */
  async #note(member: Member, before: CaseSnapshot, after: CaseSnapshot): Promise<void> {
    const { transfers, decisions, attempts, effects } = this.lost;
    const left = new Set(after.transfers.map(nameOf));
    for (const one of before.transfers.filter((it) => !left.has(nameOf(it)))) {
      transfers.set(nameOf(one), one.newEpoch);
    }
    const decided = new Set(after.decisions.map(idOf));
    for (const one of before.decisions.filter((it) => !decided.has(idOf(it)))) {
      decisions.add(lostBy(member.url, one));
      attempts.add(idOf(one));
    }
    const offered = new Set(after.offers.map(idOf));
    for (const one of before.offers.filter((it) => !offered.has(idOf(it)))) attempts.add(idOf(one));
    // An effect of which no ledger knows any more: only the business system does, by its key.
    const all = await Promise.all(this.#options.members.map(({ ledger }) => ledger.listEffects(REF)));
    const known = new Set(all.flat().flatMap(({ key, state }) => (state === 'failed' ? [] : [key])));
    for (const one of this.#options.performed()) {
      if (one.by === member.url && one.happened && !known.has(one.key)) effects.add(one);
    }
  }

  /** A new process of the agent, which asks everybody. */
  async #begin(member: Member, members = this.#options.members): Promise<void> {
    const others = members.filter((one) => one !== member);
    const provable = await Promise.all(
      others.map(async (by) =>
        (await by.ledger.listTransfers(REF))
          .filter(({ key, toAgent }) => key.sender === member.url || toAgent === member.url)
          .map((transfer) => ({ by, run: by.run, transfer })),
      ),
    );
    this.#provable.set(member, provable.flat());
    await member.begin(others.map(({ url }) => url));
    await this.#ask(member);
  }

  async #ask(member: Member, only?: string): Promise<void> {
    for (const peer of await member.awaits()) {
      if (only === undefined || peer === only) await this.#announce(member, peer, null);
    }
  }

  async #announce(member: Member, to: string, cursor: string | null): Promise<void> {
    const current = await member.ledger.getIncarnation(member.url);
    if (current === null) return;
    const { incarnation, since } = current;
    const held = await member.ledger.listOffers('acme', { from: member.url, to, open: true });
    const open = held.map(({ key }) => attemptName(key));
    this.#options.send({
      to,
      message: { say: 'announce', by: member.url, incarnation, since, open, cursor },
    });
  }

  async hear(member: Member, message: Announcement | Receipts): Promise<void> {
    if (message.say === 'announce') await this.#answer(member, message);
    else await this.#take(member, message);
  }

  async #answer(member: Member, { by, incarnation, since, open, cursor }: Announcement): Promise<void> {
    const { send, tolerate } = this.#options;
    await tolerate(async () => {
      const told = { tenant: 'acme', agent: member.url, peer: by, incarnation, since, open };
      await member.ledger.hearIncarnation(told);
      const page = { tenants: ['acme'], after: cursor, limit: PAGE };
      const { receipts, next } = await member.ledger.listReceipts(by, page);
      const held = await member.ledger.listTransfers(REF);
      const transfers = receipts.map((it) => held.find(({ receipt }) => receipt === it) as Transfer);
      const message: Receipts = { say: 'receipts', by: member.url, incarnation, transfers, next };
      send({ to: by, message });
      if (cursor === null) await this.#ask(member, by);
    });
  }

  async #take(member: Member, { by, incarnation, transfers, next }: Receipts): Promise<void> {
    const { ledger, url: agent } = member;
    if ((await ledger.getIncarnation(agent))?.incarnation !== incarnation) return;
    for (const transfer of transfers) {
      this.#options.seen(`receipt ${await ledger.settleReceipt({ agent, by, transfer })}`);
    }
    if (next !== null) {
      this.#options.seen('another page');
      return this.#announce(member, by, next);
    }
    await ledger.peerAnswered({ agent, peer: by, incarnation });
    await this.#checkBack(member);
  }

  /** H7: what another held all the time has come back, once everybody has answered. */
  async #checkBack(member: Member): Promise<void> {
    const { ledger } = member;
    if ((await member.awaits()).length > 0 || (await member.isQuarantined())) return;
    const known = new Set((await ledger.listTransfers(REF)).map(nameOf));
    const epoch = (await ledger.getCase(REF))?.epoch ?? 0;
    for (const { by, run, transfer } of this.#provable.get(member) ?? []) {
      if (by.run !== run || known.has(nameOf(transfer)) || epoch > transfer.newEpoch) continue;
      throw new Error(`H7: ${member.url} was not told of epoch ${transfer.newEpoch}, which ${by.url} proves`);
    }
  }

  /** All begin anew, so that whatever anybody holds of another comes back. */
  async beginAll(): Promise<void> {
    for (const member of this.#options.members) await this.#begin(member);
  }

  /** Whoever still waits for an answer asks again. */
  async askAll(): Promise<void> {
    for (const member of this.#options.members) await this.#ask(member);
  }

  /**
   * What persons do about cases in quarantine: they find out in the other ledgers who owns the case, and say so. That is who goes on with it
   * unchallenged; else whoever the latest receipt names.
   */
  async recover(): Promise<void> {
    const { members, seen } = this.#options;
    const stands = await Promise.all(
      members.map(async (member) => ({
        member,
        row: await member.ledger.getCase(REF),
        quarantine: (await member.ledger.listQuarantined('acme'))[0] ?? null,
        transfers: await member.ledger.listTransfers(REF),
      })),
    );
    const closed = stands.filter(({ quarantine }) => quarantine !== null);
    if (closed.length === 0) return;
    const claims = stands.flatMap(({ member, row, quarantine }) =>
      row !== null && actsFor(row.owner) === member.url
        ? [{ owner: row.owner, epoch: row.epoch, sound: quarantine === null }]
        : [],
    );
    const proved = stands.flatMap(({ transfers, quarantine }) => [
      ...transfers.map(({ toAgent, newEpoch }) => ({ owner: toAgent, epoch: newEpoch, sound: false })),
      ...(quarantine === null ? [] : [witnessedIn(quarantine)]),
    ]);
    const isClosed = ({ owner }: { owner: string }) =>
      closed.some(({ member }) => member.url === actsFor(owner));
    const found = [...claims, ...proved].filter((one) => one.sound || isClosed(one));
    const best = found.sort((a, b) => Number(b.sound) - Number(a.sound) || b.epoch - a.epoch)[0];
    if (best === undefined) throw new Error('H7: nobody knows who owns the case');
    const above = Math.max(
      ...stands.map(({ row }) => row?.epoch ?? 0),
      ...[...claims, ...proved].map(({ epoch }) => epoch),
    );
    for (const { member, row, quarantine } of closed) {
      const { reason, witnessed } = quarantine as Quarantine;
      const [open] = await member.ledger.listOffers('acme', { from: member.url, open: true });
      await member.ledger.recoverCase({
        ref: REF,
        kind: 'dispute',
        epoch: row?.epoch ?? null,
        above,
        owner: best.owner,
        quarantine: { reason, witnessed },
        resolution: { by: personOf(member), reason: 'the other ledgers were looked at' },
        voids: open === undefined ? null : { key: open.key, answer: WITHDRAWN },
      });
      // With the recovery the person closes what was open, whatever its receiver has said.
      if (open !== undefined) this.lost.decisions.add(lostBy(open.toAgent, open));
      seen('recovered');
    }
  }
}

function witnessedIn({ witnessed }: Quarantine): { owner: string; epoch: number; sound: boolean } {
  return { owner: String(witnessed.toAgent), epoch: Number(witnessed.epoch), sound: false };
}
