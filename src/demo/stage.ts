import { setTimeout as sleep } from 'node:timers/promises';
import { HoldfastError, isHoldfastError, type JsonObject } from '../core/index.js';
import type { HandOffInput, HandOffResult } from '../handoff/index.js';
import type { CaseSnapshot } from '../ledger/index.js';
import { readRefusal } from './answers.js';
import type { Prepared, RawSend } from './commands.js';
import type { Refused, RunState } from './expectation.js';
import { CONTRACT } from './fixture.js';
import type { Role, Standing } from './standing.js';
import type { Timeline } from './timeline.js';
import type { World } from './world.js';

const WORK_LIMIT_MS = 30_000;

/** What a play acts on and writes to: the world, the timeline, and what was refused on the way. */
export class Stage {
  readonly world: World;
  readonly refused: Refused[] = [];
  readonly trail: RunState['trail'][number][] = [];
  /** Instants at which it was looked who can cause effects, and those at which more than one could. */
  readonly observed: { instants: number; overlaps: string[] } = { instants: 0, overlaps: [] };
  readonly #timeline: Timeline;

  /** Looks at the ledgers whenever a message is about to arrive, from now on. */
  constructor(world: World, timeline: Timeline) {
    this.world = world;
    this.#timeline = timeline;
    for (const { proxy } of world.agents()) {
      proxy.onCrossing = async (what) => void (await this.look(what));
    }
  }

  /** Messages go on without being looked at. */
  stopLooking(): void {
    for (const { proxy } of this.world.agents()) proxy.onCrossing = null;
  }

  /** The case in the ledger in which triage keeps its offers. */
  sent(): Promise<CaseSnapshot> {
    const { ledgers, ref } = this.world;
    return ledgers.snapshot(ledgers.nameFor('triage'), ref);
  }

  /** The case in the ledger in which a receiver keeps its decisions. */
  received(by: Role = 'billing'): Promise<CaseSnapshot> {
    const { ledgers, ref } = this.world;
    return ledgers.snapshot(ledgers.nameFor(by), ref);
  }

  /** Who owns the case at this moment, and who can act. */
  async look(at: string): Promise<Standing> {
    const standing = await this.world.ledgers.standing(this.world.ref);
    this.observed.instants += 1;
    if (standing.acting.length > 1) this.observed.overlaps.push(`${at}: ${standing.acting.join(' and ')}`);
    return standing;
  }

  /** Reads who owns the case at this moment, and shows it beside what happened. */
  async say(step: string, text: string): Promise<void> {
    this.#timeline.line(step, text, await this.look(text));
  }

  /** As {@link say}, and keeps who owned the case for the comparison at the end. */
  async witness(at: string, step: string, text: string): Promise<void> {
    const standing = await this.look(at);
    this.trail.push({ at, ...standing });
    this.#timeline.line(step, text, standing);
  }

  refuse(refused: Refused): void {
    this.refused.push(refused);
  }

  prepare(): Promise<Prepared> {
    return this.world.triage.call('prepare', {});
  }

  handOff(prepared: Prepared, more: Partial<HandOffInput> = {}): Promise<HandOffResult> {
    const { triage, billingUrl, ref } = this.world;
    return triage.call('handOff', {
      ref,
      caseFile: prepared.caseFile,
      to: billingUrl,
      contract: CONTRACT,
      evidence: [{ artifactId: prepared.artifactId }],
      ...more,
    });
  }

  /** Sends a message as it stands, and notes how it was refused. Returns what was answered. */
  async sendRaw(
    of: string,
    message: JsonObject,
    options: Partial<RawSend> & { as?: 'triage' | 'outsider' } = {},
  ) {
    const { as = 'triage', ...send } = options;
    const answer = await this.world.agent(as).call('send', { to: this.world.billingUrl, message, ...send });
    const refusal = readRefusal(answer);
    if (refusal) this.refuse({ of, ...refusal });
    await this.say('', `${of}: ${refusal ? `refused, ${refusal.code}` : 'answered'}`);
    return answer;
  }

  /** Runs what has to be refused by the ledger. */
  async expectRefusal(act: () => Promise<unknown>, of?: string): Promise<void> {
    try {
      await act();
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      const { presented, current } = error.data;
      this.refuse({
        ...(of === undefined ? {} : { of }),
        code: error.code,
        ...(typeof presented === 'number' ? { presented } : {}),
        ...(typeof current === 'number' ? { current } : {}),
      });
    }
  }

  /** Resolves when this agent has settled everything it accepted. @throws internal when it does not in time */
  workSettled(by: Role = 'billing'): Promise<CaseSnapshot> {
    return this.until(
      () => this.received(by),
      ({ work }) => work.every(({ state }) => state !== 'open'),
      `${by} did not finish its work in time`,
    );
  }

  /** Resolves when triage has verified and kept the receipt of its offer. @throws internal when it does not in time */
  receiptKept(): Promise<CaseSnapshot> {
    return this.until(
      () => this.sent(),
      ({ offers }) => offers.every(({ receipt }) => receipt !== null),
      'triage did not verify the receipt in time',
    );
  }

  /** Reads until this is so. @throws internal when it is not in time */
  async until(
    read: () => Promise<CaseSnapshot>,
    reached: (snapshot: CaseSnapshot) => boolean,
    otherwise: string,
  ): Promise<CaseSnapshot> {
    for (const end = Date.now() + WORK_LIMIT_MS; ; ) {
      const snapshot = await read();
      if (reached(snapshot)) return snapshot;
      if (Date.now() > end) throw new HoldfastError('internal', otherwise);
      await sleep(20);
    }
  }
}
