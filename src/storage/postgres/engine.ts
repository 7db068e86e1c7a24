import { randomUUID } from 'node:crypto';
import { type Clock, HoldfastError, isSameCase, pauseAbout, toUtc } from '../../core/index.js';
import { faultPoint } from '../../faults/index.js';
import {
  type CommandOf,
  type Judge,
  judge,
  type ResultOf,
  type RuleName,
  type Ruling,
} from '../../ledger/index.js';
import type { Engine, LedgerReads, ReadName } from '../engine.js';
import { type Command, commandOf } from './changes.js';
import { committer, type Outcome } from './commit.js';
import type { Connections, Session } from './connection.js';
import { isRaced, isRolledBack, toHoldfastError } from './errors.js';
import { NO_PARTIES, type Parties, partiesOf, UNNAMED_PARTIES } from './incarnations.js';
import { caseOf } from './keys.js';
import { Lanes } from './lanes.js';
import { liftIn } from './lift.js';
import { questionsOf, reading } from './questions.js';
import { type Scope, scopeOf } from './scope.js';
import { Elsewhere, type Slice } from './slice.js';
import { Slices } from './slices.js';

export interface EngineOptions {
  /** Instead of the database's clock. */
  readonly clock?: Clock;
  /** Batches on their way at once. */
  readonly lanes: number;
  /** Commands that wait to be sent; the next is `busy`. */
  readonly waiting: number;
  /** Commands at once that each wait for a case which somebody else holds. */
  readonly patient: number;
  readonly settleMs: number;
}

/** How often a command is judged on a case that others change meanwhile, before it holds the case first. */
const OPTIMISTIC = 3;
const PESSIMISTIC = 5;

const BEGIN = { name: 'begin', text: 'BEGIN' };
const COMMIT = { name: 'end', text: 'COMMIT' };
const ROLLBACK = { name: 'rollback', text: 'ROLLBACK' };
const HOLD = {
  name: 'hold',
  text: 'SELECT 1 FROM holdfast.audit_heads WHERE tenant = $1 AND root = $2 AND case_id = $3 FOR UPDATE',
};

/**
 * Judges here, by the same rules, on what it last saw of the case, and lets the database prove that it is still so: the head of the
 * case's audit chain is the version of all that the ledger holds on it, and is compared in the transaction that writes. A guess that
 * was wrong is judged again on what is there now. A ruling that writes nothing is only given on what was read for it.
 *
 * Time is the database's: the statement that commits compares limits with its own clock, and a rule is told what that clock said
 * when the slice was read, and the time that has passed since. A `clock` that was given takes its place in both.
 */
export function postgresEngine(
  connections: Connections,
  options: EngineOptions,
  rule: Judge = judge,
): Engine {
  const { clock, ...limits } = options;
  const given = () => (clock === undefined ? null : toUtc(clock.now()));
  const slices = new Slices(connections, limits);
  const commit = committer(connections, { ...limits, given });
  const lanes = new Lanes(limits.waiting);
  const nowOf = (slice: Slice) => clock?.now() ?? slice.clock();
  const questions = questionsOf(connections, slices, { of: nowOf, given: () => clock?.now() });

  /** @throws Elsewhere, and what the rule throws */
  const decide = <N extends RuleName>(name: N, command: CommandOf<N>, slice: Slice, parties: Parties) => {
    const view = slice.view(nowOf(slice), parties);
    let byKind = false;
    const kind: typeof view.kind = (...args) => {
      byKind = true;
      return view.kind(...args);
    };
    const ruling = rule({ ...view, kind }, name, command);
    const { audit, changes } = ruling;
    if (audit === null && changes.length === 0) return { ruling, write: null };
    if (audit !== null && (slice.ref === undefined || !isSameCase(audit.ref, slice.ref)))
      throw new Elsewhere(audit.ref);
    const moves = changes.some((change) => change.do === 'move_case');
    const acceptBy = moves && 'acceptBy' in command ? toUtc(new Date(command.acceptBy)) : undefined;
    const write = commandOf({ ruling, slice, at: toUtc(view.now), byKind, acceptBy }, randomUUID());
    faultPoint('L2.changed');
    return { ruling, write };
  };

  /** Read anew for each look: no head of a case tells of it. */
  const partiesFor = async (scope: Scope, slice: Slice, session?: Session): Promise<Parties> => {
    const { party } = scope;
    if (party === undefined) return UNNAMED_PARTIES;
    if (!party.always && slice.kind?.mode !== 'separate') return NO_PARTIES;
    const ask = (one: Session) => partiesOf(one, party, scope, given());
    return session === undefined ? reading(() => connections.use(ask)) : ask(session);
  };

  /** Whether the command is carried out; if not, it is to be judged again. @throws internal */
  const isDone = async (write: Command, slice: Slice, scope: Scope, outcome: Outcome): Promise<boolean> => {
    if (outcome.status === 'done' || outcome.status === 'already') {
      slices.advance(slice, write);
      return true;
    }
    slices.forget(scope);
    if (outcome.status === 'broken') throw broken(outcome);
    return outcome.settled && write.newHead === null && (await slices.load(scope)).holds(write.changes);
  };

  /** Judges on what is known, and commits if that is how it is. `null`: others are faster. */
  const optimistic = async <N extends RuleName>(name: N, command: CommandOf<N>, scope: Scope) => {
    let guess = slices.guess(scope);
    for (let tries = 0; tries < OPTIMISTIC; ) {
      const guessed = guess !== undefined;
      const slice = guess ?? (await reading(() => slices.load(scope)));
      guess = undefined;
      let decided: Decided<N>;
      try {
        decided = decide(name, command, slice, await partiesFor(scope, slice));
      } catch (error) {
        if (guessed) continue;
        throw error;
      }
      const { ruling, write } = decided;
      if (write === null) {
        if (guessed) continue;
        return ruling;
      }
      if (await isDone(write, slice, scope, await commit.run(write))) return ruling;
      tries += 1;
    }
    return null;
  };

  /** Judges and commits while it holds the case. */
  const pessimistic = async <N extends RuleName>(name: N, command: CommandOf<N>, scope: Scope) => {
    let last: Outcome | undefined;
    for (let tries = 0; tries < PESSIMISTIC; tries += 1, await pauseAbout(20)) {
      let sent: { ruling: Ruling<ResultOf<N>>; write: Command; slice: Slice } | undefined;
      const attempt = async (session: Session) => {
        await session.query(BEGIN);
        try {
          if (scope.ref !== undefined) await session.query(HOLD, caseOf(scope.ref));
          const slice = await slices.loadIn(session, scope, nowOf);
          const parties = await partiesFor(scope, slice, session);
          const { ruling, write } = decide(name, command, slice, parties);
          if (write !== null) {
            const lifted = await liftIn(session, write.changes);
            last = await commit.within(session, write);
            if (lifted && last.status !== 'done') throw new HoldfastError('busy');
            sent = { ruling, write, slice };
          }
          await session.commit(COMMIT);
          return ruling;
        } catch (error) {
          if (isRolledBack(error) || error instanceof Elsewhere) await session.query(ROLLBACK);
          throw error;
        }
      };
      try {
        const ruling = await connections.use(attempt);
        if (sent === undefined) return ruling;
      } catch (error) {
        if (isRaced(error)) continue;
        if (isRolledBack(error) || sent === undefined) throw error;
        last = await commit.settle(sent.write, error);
      }
      if (last !== undefined && (await isDone(sent.write, sent.slice, scope, last))) return sent.ruling;
    }
    throw last?.status === 'conflict' ? broken(last) : new HoldfastError('busy');
  };

  const write = async <N extends RuleName>(name: N, command: CommandOf<N>, start: Scope) => {
    faultPoint('L1.begun');
    let scope = start;
    for (let cases = 0; ; cases += 1) {
      try {
        // What no head of a case tells of is locked first; others that claim pass over it. What takes more than one statement needs the case.
        const { offers, items, pending, pushes, lifts, candidates } = scope;
        const claims = [offers, items, pending, pushes].some((claim) => claim !== undefined);
        const holds = claims || lifts === true || candidates === true || scope.holds === true;
        const ruling = holds ? null : await optimistic(name, command, scope);
        return ruling ?? (await pessimistic(name, command, scope));
      } catch (error) {
        if (!(error instanceof Elsewhere) || cases > 0) throw error;
        scope = { ...scope, ref: error.ref, ...(scope.ref === undefined ? {} : { other: scope.ref }) };
      }
    }
  };

  let closed = false;
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    if (closed) throw new HoldfastError('ledger_unavailable');
    try {
      return await work();
    } catch (error) {
      throw toHoldfastError(error);
    }
  };

  return {
    async write<N extends RuleName>(name: N, command: CommandOf<N>): Promise<ResultOf<N>> {
      const ruling = await guarded(() => {
        const scope = scopeOf(name, command);
        const lane = scope.ref === undefined ? undefined : JSON.stringify(caseOf(scope.ref));
        return lanes.run(lane, () => write(name, command, scope));
      });
      if ('refusal' in ruling) throw ruling.refusal;
      return ruling.result;
    },
    read: <Q extends ReadName>(name: Q, ...args: Parameters<LedgerReads[Q]>) => {
      const question = questions[name] as (
        ...given: Parameters<LedgerReads[Q]>
      ) => Promise<ReturnType<LedgerReads[Q]>>;
      return guarded(() => question(...args));
    },
    async close(): Promise<void> {
      closed = true;
      await lanes.idle();
      await connections.close();
    },
  };
}

interface Decided<N extends RuleName> {
  readonly ruling: Ruling<ResultOf<N>>;
  readonly write: Command | null;
}

function broken({ detail }: Outcome): HoldfastError {
  const cause = new Error(detail ?? 'The same row, again and again.');
  return new HoldfastError('internal', 'An invariant of the ledger does not hold.', { cause });
}
