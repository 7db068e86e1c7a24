import { toUtc } from '../../core/index.js';
import type { AddWatchCommand, TaskWatch } from '../watch.js';
import type { Rule } from './ruling.js';

/*
 * Tasks at peers that an agent wants to hear of, and the notifications of them that it has heard. Nothing here concerns a case: what is
 * heard leads to a read, and what was read to whatever the rules of a case allow.
 */

/** Remembered for one watch; older ones are forgotten first. Hearing one again costs a read. */
const MAX_HEARD = 1_000;

export const addWatch: Rule<AddWatchCommand, TaskWatch> = ({ now }, { lastsMs, ...watch }) => {
  const until = toUtc(new Date(now.getTime() + lastsMs));
  const row: TaskWatch = { ...watch, createdAt: toUtc(now), until };
  return { changes: [{ do: 'add_watch', row }], audit: null, result: row };
};

/** Idempotent, with all that was heard. */
export const removeWatch: Rule<{ readonly tenant: string; readonly watchId: string }, void> = (
  _view,
  watch,
) => ({
  changes: [{ do: 'remove_watch', ...watch }],
  audit: null,
  result: undefined,
});

/** Those whose time is over. */
export const pruneWatches: Rule<{ readonly tenant: string; readonly agent: string }, void> = (
  { now },
  watches,
) => ({
  changes: [{ do: 'prune_watches', ...watches, now: toUtc(now) }],
  audit: null,
  result: undefined,
});

export const hear: Rule<{ readonly watchId: string; readonly notificationId: string }, void> = (
  { now },
  heard,
) => ({
  changes: [{ do: 'hear', ...heard, at: toUtc(now), most: MAX_HEARD }],
  audit: null,
  result: undefined,
});
