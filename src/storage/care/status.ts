import { systemClock, toUtc } from '../../core/index.js';
import { type LedgerOptions, openDatabase } from '../open.js';
import { type LedgerTarget, redactUrl } from '../target.js';
import type { LedgerDatabase } from './database.js';
import type { Inspection } from './inspection.js';

export interface LedgerCounts {
  readonly cases: number;
  readonly open_offers: number;
  readonly open_work: number;
  readonly unknown_effects: number;
  readonly quarantined: number;
  /** Peers that have not said what they hold since an agent here was started. */
  readonly waiting_peers: number;
}

export interface LedgerStatus {
  /** Without a password. */
  readonly target: string;
  readonly engine: LedgerDatabase['engine'];
  readonly schema: { readonly found: number; readonly known: number };
  /** `null` where there is no ledger yet, or one of another schema. */
  readonly incarnation: string | null;
  readonly counts: LedgerCounts | null;
  readonly inspection: Inspection;
}

/** What a ledger is and holds; nothing is made, migrated or written. @throws ledger_unavailable, config_invalid */
export async function ledgerStatus(target: LedgerTarget, options: LedgerOptions = {}): Promise<LedgerStatus> {
  const database = await openDatabase(target, options);
  try {
    const schema = await database.schema();
    const isCurrent = schema.found === schema.known;
    return {
      target: redactUrl(target),
      engine: database.engine,
      schema,
      incarnation: isCurrent ? await database.incarnation() : null,
      counts: isCurrent ? await countsOf(database) : null,
      inspection: await database.inspect(),
    };
  } finally {
    await database.close();
  }
}

export function countsOf(database: LedgerDatabase): Promise<LedgerCounts> {
  const past = `state = 'started' AND limit_at <= '${toUtc(systemClock.now())}'`;
  return database.frozen(async () => ({
    cases: await database.count('cases'),
    open_offers: await database.count('offers', "state IN ('intended', 'offered', 'in_doubt')"),
    open_work: await database.count('work_items', "state = 'open'"),
    unknown_effects: await database.count('effects', `state = 'unknown' OR ${past}`),
    quarantined: await database.count('quarantines'),
    waiting_peers: await database.count('awaited_peers', "state = 'waiting'"),
  }));
}
