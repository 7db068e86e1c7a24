import { HoldfastError } from '../../core/index.js';

/** SQLSTATE of an error that the server answered with; `null` where it is none of the server's. */
export function sqlState(error: unknown): string | null {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : null;
}

/** Classes after which the transaction is certainly rolled back and the connection as good as before. */
const ROLLED_BACK = /^(?:0A|21|22|23|25|26|40(?!003)|42|53|54|55|P0|HF)|^57014$/;

/**
 * Whether the server said that it did nothing. After any other error, a lost connection or a time-out among them, what was sent
 * may have been carried out.
 */
export function isRolledBack(error: unknown): boolean {
  return error instanceof HoldfastError || ROLLED_BACK.test(sqlState(error) ?? '');
}

/** Two transactions were in each other's way; the same again can succeed. */
export function isRaced(error: unknown): boolean {
  const state = sqlState(error);
  return state === '40001' || state === '40P01';
}

/** Another transaction holds what this one needs, longer than it waits. */
export function isLockedOut(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

const BUSY = /^(?:40|55P03|57014)/;
const OURS = /^(?:0A|21|22|23|26|42(?!501)|54|55|HF|P0)/;

/** What a caller may know: the code. Statement, host, password and driver text stay in `cause`. */
export function toHoldfastError(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const state = sqlState(error) ?? '';
  const code = BUSY.test(state) ? 'busy' : OURS.test(state) ? 'internal' : 'ledger_unavailable';
  return new HoldfastError(code, undefined, { cause: error });
}
