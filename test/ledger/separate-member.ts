import type { LedgerStore } from '../../src/ledger/index.js';
import { TestClock } from '../storage/suite/fixtures.js';
import { PARTIES, Party, SEPARATE } from '../storage/suite/parties.js';
import type { Disk, OpenDisk } from './disks.js';

/** One organisation of the search: its ledger can be put back to an earlier state, and its processes come and go. */
export class Member extends Party {
  declare ledger: LedgerStore;
  #disk: Disk;
  readonly #kept: (() => Promise<Disk>)[] = [];
  #said = 0;
  /** Counts its processes; what was asked by an earlier one is answered to nobody. */
  run = 0;

  private constructor(url: string, disk: Disk, clock: TestClock) {
    super(url, disk.ledger, clock);
    this.#disk = disk;
  }

  static async open(url: string, openDisk: OpenDisk): Promise<Member> {
    const clock = new TestClock();
    const disk = await openDisk(clock);
    const operations = Object.fromEntries(Object.values(PARTIES).map((agent) => [agent, ['refund']]));
    const limits = { ...SEPARATE.limits, maxHops: 1000, maxTasks: 1000 };
    const kind = { ...SEPARATE, limits, policy: { ...SEPARATE.policy, operations } };
    await disk.ledger.putKind('acme', kind);
    return new Member(url, disk, clock);
  }

  /** Something that it says for the first time: the same words at another time are other bytes. */
  words(): string {
    this.#said += 1;
    return `${this.#said} of ${this.url}`;
  }

  async keep(): Promise<void> {
    this.#kept.push(await this.#disk.keep());
  }

  /** How many states of its ledger it could put back. */
  get kept(): number {
    return this.#kept.length;
  }

  async putBack(at: number): Promise<void> {
    this.#disk = await (this.#kept[at] as () => Promise<Disk>)();
    this.ledger = this.#disk.ledger;
  }

  /** A new process of its agent begins, and none of the others lives. */
  async begin(peers: readonly string[]): Promise<string> {
    this.run += 1;
    this.clock.advance(1_000);
    const holder = `${this.url}#run_${this.run}`;
    await this.ledger.heartbeat(holder, 60_000);
    const { incarnation } = await this.ledger.beginIncarnation({
      agent: this.url,
      holder,
      incarnation: `inc_${this.run} of ${this.url}`,
      peers: peers.map((peer) => ({ peer, contracts: SEPARATE.contracts })),
      living: [],
    });
    return incarnation;
  }

  /** Under which it makes its offers; nothing where it has never begun one. */
  async made(): Promise<{ readonly incarnation?: string }> {
    const current = await this.ledger.getIncarnation(this.url);
    return current === null ? {} : { incarnation: current.incarnation };
  }

  /** Peers that have not said what they hold. */
  async awaits(): Promise<string[]> {
    const awaited = await this.ledger.listAwaited(this.url);
    return awaited.filter(({ state }) => state === 'waiting').map(({ peer }) => peer);
  }

  async isQuarantined(): Promise<boolean> {
    return (await this.ledger.listQuarantined('acme')).length > 0;
  }
}
