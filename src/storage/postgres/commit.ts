import { HoldfastError, pauseAbout } from '../../core/index.js';
import { batcher } from './batches.js';
import { batchOf, type Command } from './changes.js';
import type { Connections, Session } from './connection.js';
import { isLockedOut, isRaced, isRolledBack } from './errors.js';
import { encodeJson } from './text.js';

const COMMIT = { name: 'commit', text: 'SELECT * FROM holdfast.commit($1, $2, $3)' };

/** What became of a command; `holdfast.commit` tells. */
export interface Outcome {
  readonly n: number;
  readonly status: 'done' | 'already' | 'stale' | 'locked' | 'conflict' | 'broken';
  readonly detail: string | null;
  /** It was sent before, and that answer was lost. */
  readonly settled: boolean;
}

export interface CommitOptions {
  readonly lanes: number;
  readonly waiting: number;
  /** Commands at once that each wait for a case which somebody else holds: what waits must not keep everything else from a connection. */
  readonly patient: number;
  /** How long it is tried to find out what became of a command whose answer was lost, milliseconds. */
  readonly settleMs: number;
  /** The time to judge by, where it is not the database's own. */
  readonly given: () => string | null;
}

/** How often a command is sent again after the database ended it for another transaction's sake. */
const RACES = 5;

/**
 * Commits commands. Those that wait at one moment share a transaction; one whose case somebody else holds goes alone then, and waits.
 * Where the answer is lost, the outcome is not known: the identical command is sent again, and either finds that it was carried out or
 * is carried out now, at most once in all.
 */
export function committer(connections: Connections, options: CommitOptions) {
  const { lanes, waiting, patient, settleMs, given } = options;
  const send = async (session: Session, commands: readonly Command[], waits: boolean): Promise<Outcome[]> => {
    const values = [given(), waits, encodeJson(batchOf(commands))];
    const rows = await session.commit<Omit<Outcome, 'settled'>>(COMMIT, values);
    return rows.map((row) => ({ ...row, settled: false })).sort((a, b) => a.n - b.n);
  };

  const shared = batcher({ lanes, waiting, most: 64 }, (commands: readonly Command[]) =>
    connections.use((session) => send(session, commands, false)),
  );

  const sendAlone = (commands: readonly Command[]) =>
    connections.use((session) => send(session, commands, true));
  const alone = batcher({ lanes: patient, waiting, most: 1 }, sendAlone);

  /** Until `deadline`, of `performance.now()`. @throws outcome_unknown */
  const settle = async (command: Command, cause: unknown): Promise<Outcome> => {
    const deadline = performance.now() + settleMs;
    let conflicts = 0;
    for (; performance.now() < deadline; await pauseAbout(50)) {
      try {
        const [outcome] = (await sendAlone([command])) as [Outcome];
        // What it met may be itself, which was still on its way; the next sending can see it.
        if (outcome.status === 'conflict' && command.newHead !== null && conflicts < 2) conflicts += 1;
        else return { ...outcome, settled: true };
      } catch {
        // Still not known. Even that the server refuses to answer says nothing about what it did before.
      }
    }
    throw new HoldfastError('outcome_unknown', undefined, { cause });
  };

  /** @throws busy, outcome_unknown, and what the database says of a command that it rolled back */
  return {
    async run(command: Command): Promise<Outcome> {
      let sent = shared;
      for (let races = 0; ; races += 1) {
        try {
          const outcome = await sent(command);
          if (outcome.status !== 'locked') return outcome;
        } catch (error) {
          if (!isRolledBack(error)) return settle(command, error);
          // Of a batch only one command may have been in the way.
          const again = isRaced(error) || (isLockedOut(error) && sent === shared);
          if (!again || races >= RACES) throw error;
          await pauseAbout(5 * 2 ** races);
        }
        sent = alone;
      }
    },

    /** Inside a transaction; it is that one's COMMIT that makes it so. */
    async within(session: Session, command: Command): Promise<Outcome> {
      const [outcome] = await send(session, [command], true);
      return outcome as Outcome;
    },

    settle,
  };
}
