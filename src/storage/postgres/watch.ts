import type { TaskWatch } from '../../ledger/index.js';
import { toWatch, type WatchColumns } from '../rows/watch.js';
import type { Ask } from './keys.js';

/** By the database's clock, where no other is given. */
const GET = {
  name: 'watch',
  text: `SELECT * FROM holdfast.watches WHERE watch_id = $1
    AND until > coalesce($2, to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))`,
};
const HEARD = {
  name: 'heard',
  text: 'SELECT 1 FROM holdfast.heard WHERE watch_id = $1 AND notification_id = $2',
};

export const watchTable = (ask: Ask) => ({
  async get(watchId: string, given: string | undefined): Promise<TaskWatch | null> {
    const [row] = await ask<WatchColumns>(GET, [watchId, given]);
    return row === undefined ? null : toWatch(row);
  },
  heard: async (watchId: string, notificationId: string): Promise<boolean> =>
    (await ask(HEARD, [watchId, notificationId])).length > 0,
});
