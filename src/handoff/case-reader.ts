import { type Contract, checkContract } from '../contract/index.js';
import { type CaseRef, HoldfastError } from '../core/index.js';
import { checkFacts, type EnvelopeConstraints, type Fact, findPersonalData } from '../envelope/index.js';
import { type Constraints, type KindDefinition, narrow } from '../ledger/index.js';

/** What the system of record says of a case now. A contract looks at the facts that it names, and at no others. */
export interface CaseRecord {
  readonly facts: readonly Fact[];
}

/**
 * Reads a case where both sides of a thin contract have it, with this agent's own access; `null` where it is not there. It is a read: it
 * runs before an offer is made and again before one is accepted, and may run for an offer that comes to nothing.
 */
export type CaseReader = (ref: CaseRef) => CaseRecord | null | Promise<CaseRecord | null>;

/** What stands for the content of a thin envelope. */
export interface CaseContent {
  readonly facts: readonly Fact[];
  /** As the contract's schemas put them out. */
  readonly outputs: Record<string, unknown>;
  readonly constraints: EnvelopeConstraints;
  readonly loggable: Record<string, unknown>;
}

export interface CaseToRead {
  readonly ref: CaseRef;
  readonly kind: KindDefinition;
  readonly contract: Contract;
  /** What bounds the case already. */
  readonly constraints: Constraints;
  readonly reader: CaseReader | null;
}

/**
 * Finds out what a rich envelope would have said, and judges it by the contract in the same way.
 * @throws reader_missing, reader_failed; records_disagree where the system of record does not know the case; and as `checkContract`
 */
export async function readCase({
  ref,
  kind,
  contract,
  constraints,
  reader,
}: CaseToRead): Promise<CaseContent> {
  if (!reader) throw readerMissing(kind, contract);
  const record = await read(reader, ref);
  if (record === null) {
    throw new HoldfastError(
      'records_disagree',
      `The system of record, ${kind.systemOfRecord}, has no such case.`,
    );
  }
  const facts = checkFacts(record.facts).filter(({ key }) => Object.hasOwn(contract.facts, key));
  const { caps, prohibitions } = narrow(constraints, { ...kind.policy, operations: contract.operations });
  const outputs = await checkContract(contract, {
    facts,
    constraints: { caps, prohibitions },
    references: [],
    ...(contract.requiredOutput === undefined ? {} : { required_output: contract.requiredOutput }),
  });
  return { facts, outputs, constraints: { caps, prohibitions }, loggable: loggableOf(facts, contract) };
}

export function readerMissing({ kind }: KindDefinition, { id }: Contract): HoldfastError {
  return new HoldfastError(
    'reader_missing',
    `This agent has no case reader for the kind ${kind}, which ${id} needs.`,
    { data: { kind, contract: id } },
  );
}

async function read(reader: CaseReader, ref: CaseRef): Promise<CaseRecord | null> {
  let record: unknown;
  try {
    record = await reader(ref);
  } catch (cause) {
    throw new HoldfastError('reader_failed', undefined, { cause });
  }
  if (record === null) return null;
  if (typeof record === 'object' && 'facts' in record) return record as CaseRecord;
  throw new HoldfastError('reader_failed', 'The case reader returned neither facts nor null.');
}

/** No sender has looked these through for personal data before they are logged. */
function loggableOf(facts: readonly Fact[], contract: Contract): Record<string, unknown> {
  const loggable = facts.filter(
    ({ key, value }) =>
      contract.facts[key]?.loggable === true && findPersonalData(JSON.stringify(value)).length === 0,
  );
  return Object.fromEntries(loggable.map(({ key, value }) => [key, value]));
}
