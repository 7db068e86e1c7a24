import { HoldfastError, parsePerson } from '../../core/index.js';
import type { Resolution } from '../commands.js';
import { storable } from './facts.js';

/*
 * What a person says when they settle or move something. It stands in the audit as it was said, so it is short, one line, and names
 * records by their ids.
 */

/** A sentence or two, on one line: it is read in a table, and by who comes later. */
const MAX_REASON_CHARS = 500;
const MAX_MINUTES = 100_000;
const MAX_RECORDS = 20;
const RECORD_NAME = /^[a-z][a-z0-9_.-]{0,63}$/;
const RECORD_ID = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$/;

/** @throws usage */
export function reasonOf(text: string): string {
  const reason = storable(text).trim();
  if (reason === '' || reason.length > MAX_REASON_CHARS || /\p{Cc}/u.test(reason)) {
    throw new HoldfastError('usage', `A reason is one line of 1 to ${MAX_REASON_CHARS} characters.`);
  }
  return reason;
}

/** What of a resolution stands in the audit: by a person whose node acts for the writer, or who is the writer. @throws usage */
export function resolutionOf(
  { by, reason, minutes, records = [] }: Resolution,
  writer: string,
): Record<string, unknown> {
  if (by !== writer && parsePerson(by)?.node !== writer) {
    throw new HoldfastError('usage', `${by} does not settle anything for ${writer}.`);
  }
  if (minutes !== undefined && !(Number.isSafeInteger(minutes) && minutes >= 0 && minutes <= MAX_MINUTES)) {
    throw new HoldfastError('usage', `Minutes are a whole number from 0 to ${MAX_MINUTES}.`);
  }
  if (records.length > MAX_RECORDS)
    throw new HoldfastError('usage', `At most ${MAX_RECORDS} records are named.`);
  for (const { name, id } of records) {
    if (!RECORD_NAME.test(name) || !RECORD_ID.test(id)) {
      throw new HoldfastError(
        'usage',
        'A record is the name of a system, such as payments, and an id in it: letters, digits, ".", "_", ":", "/" and "-".',
      );
    }
  }
  return {
    by,
    reason: reasonOf(reason),
    ...(minutes === undefined ? {} : { minutes }),
    ...(records.length === 0 ? {} : { records: records.map(({ name, id }) => ({ name, id })) }),
  };
}
