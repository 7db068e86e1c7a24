import { type CaseRef, HoldfastError } from '../core/index.js';
import type { PostgresClient, SqliteDatabase } from './connection.js';
import { FENCE_REFUSALS, isFenceState } from './refusals.js';

/** Whose write to which case it is, under which epoch. */
export interface Presentation {
  readonly ref: CaseRef;
  readonly epoch: number;
  /** The URL of the agent that owns the case. */
  readonly writer: string;
}

/** What the statements of a SQLite transaction bind to the token column. */
export interface FenceToken {
  /** For INSERT and UPDATE. */
  readonly token: string;
  /** For the UPDATE that marks rows before their DELETE. */
  readonly deletion: string;
}

/**
 * Presents a case in the transaction that is open on a `pg` client: until it ends the case keeps its owner and epoch, and rows of the
 * case may be written to fenced tables. With `pg`'s pool, give the client that was checked out.
 * @throws case_unknown, epoch_stale, epoch_ahead, not_owner, case_closed, case_quarantined; effects_frozen while the case is offered to
 * a receiver with a ledger of its own; whatever else the client throws
 */
export function present(tx: PostgresClient, presentation: Presentation): Promise<void>;
/**
 * Judges a presentation in the ledger's SQLite file and returns what to bind to the token column; the fence judges it again in each
 * statement, so that a token that grew old is refused.
 * @throws case_unknown, epoch_stale, epoch_ahead, not_owner, case_closed, case_quarantined; effects_frozen while the case is offered to
 * a receiver with a ledger of its own
 */
export function present(tx: SqliteDatabase, presentation: Presentation): FenceToken;
export function present(
  tx: PostgresClient | SqliteDatabase,
  presentation: Presentation,
): Promise<void> | FenceToken {
  return 'query' in tx ? presentToPostgres(tx, presentation) : presentToSqlite(tx, presentation);
}

async function presentToPostgres(
  client: PostgresClient,
  { ref, epoch, writer }: Presentation,
): Promise<void> {
  const values = [ref.tenant, ref.root, ref.caseId, epoch, writer];
  try {
    await client.query('SELECT holdfast.present($1, $2, $3, $4, $5)', values);
  } catch (cause) {
    const { code: state, message = '' } = cause as { code?: unknown; message?: string };
    if (!isFenceState(state)) throw cause;
    const current = /current epoch (\d+)/.exec(message)?.[1];
    throw new HoldfastError(FENCE_REFUSALS[state], undefined, {
      data: {
        case_id: ref.caseId,
        presented: epoch,
        ...(current === undefined ? {} : { current: Number(current) }),
      },
      cause,
    });
  }
}

interface Held {
  readonly epoch: number;
  readonly owner: string;
  readonly status: string;
  readonly quarantined: number;
  readonly frozen: number;
}

/** Prepared once for each handle: to prepare it costs as much as the write that it is for. */
const lookups = new WeakMap<SqliteDatabase, ReturnType<SqliteDatabase['prepare']>>();

function lookupIn(db: SqliteDatabase): ReturnType<SqliteDatabase['prepare']> {
  const known = lookups.get(db);
  if (known !== undefined) return known;
  const made = db.prepare(
    `SELECT epoch, owner, status, EXISTS (SELECT 1 FROM quarantines q
       WHERE q.tenant = c.tenant AND q.root = c.root AND q.case_id = c.case_id) AS quarantined,
       EXISTS (SELECT 1 FROM offers o WHERE o.tenant = c.tenant AND o.root = c.root AND o.case_id = c.case_id
         AND o.state IN ('intended', 'offered', 'in_doubt') AND (SELECT json_extract(k.definition, '$.mode') FROM kinds k
           WHERE k.tenant = o.tenant AND k.kind = o.kind) = 'separate') AS frozen
     FROM cases c WHERE tenant = ? AND root = ? AND case_id = ?`,
  );
  lookups.set(db, made);
  return made;
}

function presentToSqlite(db: SqliteDatabase, { ref, epoch, writer }: Presentation): FenceToken {
  const held = lookupIn(db).get(ref.tenant, ref.root, ref.caseId) as Held | undefined;
  const refuse = (state: keyof typeof FENCE_REFUSALS) => {
    const current = held === undefined ? {} : { current: Number(held.epoch) };
    const data = { case_id: ref.caseId, presented: epoch, ...current };
    return new HoldfastError(FENCE_REFUSALS[state], undefined, { data });
  };
  if (held === undefined) throw refuse('HF004');
  if (Number(held.quarantined) === 1) throw refuse('HF005');
  // Not `!==` alone: better-sqlite3 gives BigInts where its user asked for them.
  if (Number(held.epoch) !== epoch) throw refuse(epoch > held.epoch ? 'HF007' : 'HF002');
  if (held.owner !== writer) throw refuse('HF003');
  if (held.status !== 'open') throw refuse('HF006');
  if (Number(held.frozen) === 1) throw refuse('HF009');
  const token = `${ref.caseId}:${epoch}:${writer}`;
  return { token, deletion: `delete ${token}` };
}
