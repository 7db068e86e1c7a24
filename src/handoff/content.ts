import type { Contract } from '../contract/index.js';
import { HoldfastError } from '../core/index.js';
import { type CaseFile, checkCaseFile } from '../envelope/index.js';
import type { CaseRow, KindDefinition } from '../ledger/index.js';
import { type CaseReader, readerMissing } from './case-reader.js';
import type { HandOffInput } from './model.js';

interface ToOffer {
  readonly row: CaseRow;
  readonly kind: KindDefinition;
  readonly contract: Contract;
  readonly reader: CaseReader | null;
}

/**
 * What of the case may leave; `null` under a thin contract, where nothing does.
 * @throws case_file_invalid, fact_unsourced; usage, thin_separate, reader_missing where the contract is thin and
 *   something is to leave, would have to, or cannot be read
 */
export function contentOf(
  { caseFile: given, evidence = [] }: HandOffInput,
  { row, kind, contract, reader }: ToOffer,
): CaseFile | null {
  if (contract.thin) {
    if (kind.mode === 'separate') throw new HoldfastError('thin_separate');
    if (given !== undefined || evidence.length > 0) {
      const message = `${contract.id} is a thin contract: it takes neither a case file nor evidence.`;
      throw new HoldfastError('usage', message);
    }
    if (!reader) throw readerMissing(kind, contract);
    return null;
  }
  if (given === undefined) {
    throw new HoldfastError('usage', `${contract.id} needs a case file; only a thin contract goes without.`);
  }
  const caseFile = checkCaseFile(given);
  if (caseFile.case_id === row.ref.caseId && caseFile.kind === row.kind) return caseFile;
  throw new HoldfastError(
    'case_file_invalid',
    `The case file is not of ${row.ref.caseId}, kind ${row.kind}.`,
  );
}
