import { type Contract, checkContract } from '../contract/index.js';
import {
  canonical,
  DEFAULT_LIMITS,
  HoldfastError,
  type JsonValue,
  parseUtc,
  sha256Hex,
  type Withheld,
} from '../core/index.js';
import type { EvidenceReference } from '../evidence/index.js';
import type { CaseFile } from './case-file.js';
import type { HandoffEnvelope } from './model.js';
import { findPersonalData } from './privacy.js';
import { type Redacted, redact, refuseTellingFilenames } from './redact.js';
import { summarize } from './summarize.js';
import { envelopeV2 } from './v2/index.js';

/** What every envelope says, thin or rich. */
interface AttemptInput
  extends Pick<
    HandoffEnvelope,
    | 'root'
    | 'incarnation'
    | 'handoff_id'
    | 'attempt'
    | 'from_agent'
    | 'to_agent'
    | 'epoch'
    | 'accept_by'
    | 'chain'
  > {
  readonly contract: Contract;
  readonly traceparent: string;
}

export interface ThinInput extends AttemptInput, Pick<HandoffEnvelope, 'case_id' | 'kind'> {}

export interface BuildInput extends AttemptInput, Pick<HandoffEnvelope, 'references' | 'effects'> {
  readonly caseFile: CaseFile;
  /** Receipts that prove to the addressee what it has not seen; none where absent. */
  readonly provenance?: readonly string[];
  /** Bytes of canonical JSON; 64 KiB where absent. */
  readonly maxEnvelopeBytes?: number;
}

export interface BuiltEnvelope {
  readonly envelope: HandoffEnvelope;
  /** RFC 8785; what is hashed and sent. */
  readonly canonical: string;
  /** SHA-256 (hex) of `canonical`. */
  readonly digest: string;
  readonly withheld: readonly Withheld[];
  /** Fact values that the contract lets into audit and logs. */
  readonly loggable: Readonly<Record<string, unknown>>;
}

function refuseEarlyExpiry(references: readonly EvidenceReference[], acceptBy: string): void {
  const deadline = parseUtc(acceptBy)?.getTime() ?? Number.POSITIVE_INFINITY;
  const early = references.flatMap((each, at) => {
    const expires = parseUtc(each.expires_at)?.getTime() ?? Number.NEGATIVE_INFINITY;
    return expires < deadline ? [`references.${at}.expires_at`] : [];
  });
  if (early.length === 0) return;
  throw new HoldfastError('evidence_expires_early', undefined, {
    fields: early.map((path) => ({ path, problem: `must not be before ${acceptBy}` })),
  });
}

function summarizeWithoutPersonalData(
  contract: Contract,
  fields: Redacted,
  references: BuildInput['references'],
) {
  const facts = fields.facts.filter((fact) => contract.facts[fact.key]?.personal !== true);
  const summary = summarize({ ...fields, facts, references });
  // Side by side, a name and a harmless value can say more than each alone.
  const found = findPersonalData(summary.text);
  if (found.length === 0) return summary;
  throw new HoldfastError('personal_data', undefined, {
    fields: found.map((problem) => ({ path: 'summary.text', problem })),
  });
}

/** The fact values that the contract lets into audit and logs, by key. */
export function loggableOf(
  { facts }: Pick<HandoffEnvelope, 'facts'>,
  contract: Contract,
): Record<string, JsonValue> {
  const loggable = facts.filter((fact) => contract.facts[fact.key]?.loggable === true);
  return Object.fromEntries(loggable.map((fact) => [fact.key, fact.value]));
}

/**
 * Makes the envelope of one attempt: redacts, checks the contract as the receiver will, and reads back what it made.
 * @throws personal_data, evidence_expires_early, envelope_too_large, and the codes of checkContract and of the codec
 */
export async function buildEnvelope(input: BuildInput): Promise<BuiltEnvelope> {
  const { contract, caseFile, references } = input;
  const { withheld, ...fields } = redact(caseFile, contract);
  refuseTellingFilenames(references);
  refuseEarlyExpiry(references, input.accept_by);
  const requiredOutput = caseFile.required_output ?? contract.requiredOutput;
  const output = requiredOutput === undefined ? {} : { required_output: requiredOutput };
  await checkContract(contract, { ...fields, ...output, references });
  const envelope: HandoffEnvelope = {
    ...identityOf(input, caseFile),
    ...fields,
    ...output,
    summary: summarizeWithoutPersonalData(contract, { ...fields, withheld }, references),
    references,
    effects: input.effects,
    provenance: input.provenance ?? [],
  };
  return finish(envelope, input, withheld);
}

/** What is another in the next attempt of a handover whose content stays. */
export interface ReaddressInput
  extends Pick<BuildInput, 'contract' | 'maxEnvelopeBytes'>,
    Pick<
      HandoffEnvelope,
      'incarnation' | 'attempt' | 'to_agent' | 'references' | 'effects' | 'accept_by' | 'chain' | 'provenance'
    > {
  readonly before: HandoffEnvelope;
  /** What was kept back when the content was made. */
  readonly withheld: readonly Withheld[];
}

/**
 * Makes the envelope of an attempt with another agent out of the one before: nothing is read anew from where the case file came from, and
 * nothing can leave that had not left.
 * @throws evidence_expires_early, envelope_too_large, and the codes of checkContract and of the codec
 */
export async function readdressEnvelope(input: ReaddressInput): Promise<BuiltEnvelope> {
  const { before, withheld, contract, maxEnvelopeBytes: _, ...others } = input;
  refuseEarlyExpiry(others.references, others.accept_by);
  const envelope: HandoffEnvelope = { ...before, ...others };
  await checkContract(contract, envelope);
  return finish(envelope, input, withheld);
}

function finish(
  envelope: HandoffEnvelope,
  { contract, maxEnvelopeBytes }: Pick<BuildInput, 'contract' | 'maxEnvelopeBytes'>,
  withheld: readonly Withheld[],
): BuiltEnvelope {
  const text = canonical(envelope);
  refuseLarge(text, maxEnvelopeBytes ?? DEFAULT_LIMITS.maxEnvelopeBytes);
  return {
    envelope: envelopeV2.parse(JSON.parse(text) as JsonValue),
    canonical: text,
    digest: sha256Hex(text),
    withheld,
    loggable: loggableOf(envelope, contract),
  };
}

/** The envelope of one attempt under a thin contract; what the contract asks for is looked at in the system of record. */
export function buildThinEnvelope(
  input: ThinInput,
): Pick<BuiltEnvelope, 'envelope' | 'canonical' | 'digest'> {
  const text = canonical(identityOf(input, input));
  return {
    envelope: envelopeV2.parse(JSON.parse(text) as JsonValue),
    canonical: text,
    digest: sha256Hex(text),
  };
}

function identityOf(input: AttemptInput, { case_id, kind }: Pick<CaseFile, 'case_id' | 'kind'>) {
  return {
    version: envelopeV2.version,
    root: input.root,
    incarnation: input.incarnation,
    case_id,
    kind,
    handoff_id: input.handoff_id,
    attempt: input.attempt,
    from_agent: input.from_agent,
    to_agent: input.to_agent,
    epoch: input.epoch,
    contract: input.contract.id,
    skill: input.contract.skill.id,
    accept_by: input.accept_by,
    chain: input.chain,
    trace: { traceparent: input.traceparent },
  };
}

/** @throws envelope_too_large */
export function refuseLarge(text: string, maxBytes: number): void {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > maxBytes)
    throw new HoldfastError('envelope_too_large', undefined, { data: { bytes, maxBytes } });
}
