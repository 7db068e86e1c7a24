import type { AcceptanceCheck, Contract, OfferView, Verdict } from '../contract/index.js';
import { ERROR_TABLE, type FieldError, HoldfastError, isErrorCode } from '../core/index.js';
import { ContractRefusal } from './answers.js';

/** What a check says that does not reject. */
export type Passed = Exclude<Verdict, { verdict: 'reject' }>;

/**
 * Runs one acceptance check. A check is a user's code, often untyped: only the word `accept` accepts, and whatever else it may
 * return decides nothing.
 * @throws ContractRefusal where it rejects; internal where its verdict is none
 */
export async function runCheck(check: AcceptanceCheck, view: OfferView, contract: Contract): Promise<Passed> {
  const verdict: unknown = await check(view);
  if (!isRecord(verdict)) throw malformed(contract, 'returned no verdict');
  if (verdict.verdict === 'accept') return { verdict: 'accept' };
  if (verdict.verdict === 'later') return { verdict: 'later' };
  if (verdict.verdict === 'clarify') {
    const { question } = verdict;
    if (typeof question !== 'string') throw malformed(contract, 'asks nothing');
    return { verdict: 'clarify', question };
  }
  if (verdict.verdict !== 'reject') throw malformed(contract, 'returned no verdict');
  const { code, reason, fields, hint } = verdict;
  if (typeof code !== 'string' || !isRejectionCode(code, contract)) {
    throw malformed(contract, `used ${String(code).slice(0, 64)}, which is no rejection code of its own`);
  }
  if (typeof reason !== 'string' || (hint !== undefined && typeof hint !== 'string') || !areFields(fields)) {
    throw malformed(contract, 'gave reason, hint or fields in another form');
  }
  throw new ContractRefusal({
    code,
    reason,
    ...(fields === undefined ? {} : { fields }),
    ...(hint === undefined ? {} : { hint }),
  });
}

function isRejectionCode(code: string, { codes = {} }: Contract): boolean {
  return isErrorCode(code) ? ERROR_TABLE[code].cls === 'rejection' : Object.hasOwn(codes, code);
}

function areFields(fields: unknown): fields is readonly FieldError[] | undefined {
  return (
    fields === undefined ||
    (Array.isArray(fields) &&
      fields.every(
        (field) => isRecord(field) && typeof field.path === 'string' && typeof field.problem === 'string',
      ))
  );
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function malformed({ id }: Contract, problem: string): HoldfastError {
  return new HoldfastError('internal', `The check of ${id} ${problem}.`);
}
