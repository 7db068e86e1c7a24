import { toUtc } from '../../core/index.js';
import type { TaskWatch } from '../../ledger/index.js';
import type { ChangeHandlers, LedgerQueries } from '../engine.js';
import type { Table } from './tables.js';

export interface Heard {
  readonly watchId: string;
  readonly notificationId: string;
}

export interface WatchTables {
  readonly watches: Table<TaskWatch>;
  readonly heard: Table<Heard>;
}

type WatchChange = 'add_watch' | 'remove_watch' | 'prune_watches' | 'hear';

export function watchHandlersOf({ watches, heard }: WatchTables): Pick<ChangeHandlers, WatchChange> {
  const remove = (goes: (row: TaskWatch) => boolean): void => {
    watches.remove(goes);
    heard.remove(({ watchId }) => watches.get(watchId) === null);
  };
  return {
    add_watch: ({ row }) => watches.put(row, row.watchId),
    remove_watch: ({ tenant, watchId }) => remove((row) => row.tenant === tenant && row.watchId === watchId),
    prune_watches: ({ tenant, agent, now }) =>
      remove((row) => row.tenant === tenant && row.agent === agent && row.until <= now),
    hear({ watchId, notificationId, most }) {
      if (watches.get(watchId) === null) return;
      heard.put({ watchId, notificationId }, watchId, notificationId);
      const all = heard.where((row) => row.watchId === watchId);
      const forgotten = new Set(all.slice(0, Math.max(0, all.length - most)));
      heard.remove((row) => forgotten.has(row));
    },
  };
}

export function watchQueriesOf(
  { watches, heard }: WatchTables,
  now: Date,
): Pick<LedgerQueries, 'watch' | 'heard'> {
  return {
    watch(watchId) {
      const found = watches.get(watchId);
      return found !== null && found.until > toUtc(now) ? found : null;
    },
    heard: (watchId, notificationId) => heard.get(watchId, notificationId) !== null,
  };
}
