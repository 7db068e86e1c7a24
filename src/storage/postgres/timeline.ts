import type pg from 'pg';
import { HoldfastError } from '../../core/index.js';

/** Which server this is, and the branch of its history that it writes; a promotion begins the next. */
export interface TimelineInfo {
  readonly systemId: string;
  readonly timeline: number;
  /** The newest that this process had seen before; `null` at its first connection. */
  readonly previous: number | null;
}

interface Found {
  readonly standby: boolean;
  readonly system_id: string;
  readonly timeline: string | null;
}

const WHO = `SELECT pg_is_in_recovery() AS standby, system_identifier::text AS system_id,
  CASE WHEN NOT pg_is_in_recovery() THEN substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END AS timeline
  FROM pg_control_system()`;

/**
 * Looks at each new connection before it is used: who owns a case is never asked of a standby, nor of a primary that another has
 * taken over from. On a newer timeline `onTimeline` is awaited first, since what was committed on the older one may not be there.
 */
export function timelines(
  onTimeline: ((info: TimelineInfo) => Promise<void>) | undefined,
  onChange: () => void,
): (client: pg.ClientBase) => Promise<void> {
  let newest: { readonly systemId: string; readonly timeline: number } | null = null;
  let looking: Promise<void> = Promise.resolve();

  const admit = async ({ standby, system_id: systemId, timeline: hex }: Found): Promise<void> => {
    if (standby || hex === null) throw refused('The database is a standby.', systemId, null);
    const timeline = Number.parseInt(hex, 16);
    const previous = newest?.timeline ?? null;
    if (newest !== null && (systemId !== newest.systemId || timeline < newest.timeline)) {
      throw refused('The database is not the one that took over.', systemId, timeline);
    }
    if (timeline === previous) return;
    await onTimeline?.({ systemId, timeline, previous });
    newest = { systemId, timeline };
    if (previous !== null) onChange();
  };

  return async (client) => {
    const found = (await client.query<Found>(WHO)).rows[0];
    if (found === undefined) throw new HoldfastError('ledger_unavailable');
    const turn = looking.then(() => admit(found));
    looking = turn.catch(() => undefined);
    try {
      await turn;
    } catch (error) {
      onChange();
      throw error;
    }
  };
}

function refused(message: string, systemId: string, timeline: number | null): HoldfastError {
  return new HoldfastError('ledger_unavailable', message, { data: { systemId, timeline } });
}
