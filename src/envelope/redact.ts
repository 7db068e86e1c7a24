import type { Contract } from '../contract/index.js';
import { type FieldError, HoldfastError, type JsonValue, type Withheld } from '../core/index.js';
import type { EvidenceReference } from '../evidence/index.js';
import type { CaseFile } from './case-file.js';
import type { AnswerPart } from './clarification.js';
import { findPersonalData, redactText } from './privacy.js';

/** What of a case file the contract lets out, and a record of what it did not. */
export interface Redacted extends Omit<CaseFile, 'case_id' | 'kind' | 'required_output' | 'unlisted'> {
  readonly withheld: readonly Withheld[];
}

type Scanned = Pick<Redacted, 'facts' | 'goal' | 'done' | 'remaining' | 'open_questions'>;

function scanText(path: string, text: string): FieldError[] {
  return findPersonalData(text).map((problem) => ({ path, problem }));
}

function scanValue(path: string, value: JsonValue): FieldError[] {
  if (typeof value === 'string' || typeof value === 'number') return scanText(path, String(value));
  if (typeof value !== 'object' || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((each, at) => scanValue(`${path}.${at}`, each));
  return Object.entries(value).flatMap(([key, each]) => {
    // A name can be personal data itself; what is said about it must not repeat that.
    const inner = `${path}.${redactText(key).text}`;
    return [...scanText(inner, key), ...scanValue(inner, each)];
  });
}

/**
 * Free text is where an allow list of fields does not help: a phone number fits into any goal.
 * @throws personal_data naming the fields
 */
function refusePersonalData(contract: Contract, out: Scanned): void {
  const facts = out.facts.filter((fact) => contract.facts[fact.key]?.personal !== true);
  const fields = [
    ...scanText('goal', out.goal),
    ...scanValue('done', [...out.done]),
    ...scanValue('remaining', [...out.remaining]),
    ...scanValue('open_questions', [...out.open_questions]),
    ...facts.flatMap((fact) => scanValue(`facts.${fact.key}.value`, fact.value)),
    ...out.facts.flatMap((fact) => scanText(`facts.${fact.key}.source`, fact.source)),
  ];
  if (fields.length > 0) throw new HoldfastError('personal_data', undefined, { fields });
}

/** The same for an answer, of which the contract names every fact. @throws personal_data naming the fields */
export function scanAnswer({ facts, text }: AnswerPart, contract: Contract): void {
  const scanned = facts.filter((fact) => contract.facts[fact.key]?.personal !== true);
  const fields = [
    ...scanned.flatMap((fact) => scanValue(`facts.${fact.key}.value`, fact.value)),
    ...facts.flatMap((fact) => scanText(`facts.${fact.key}.source`, fact.source)),
    ...(text === undefined ? [] : scanText('text', text)),
  ];
  if (fields.length > 0) throw new HoldfastError('personal_data', undefined, { fields });
}

/** @throws personal_data naming the references whose file name says too much */
export function refuseTellingFilenames(references: readonly Pick<EvidenceReference, 'filename'>[]): void {
  const fields = references.flatMap(({ filename }, at) => scanText(`references.${at}.filename`, filename));
  if (fields.length > 0) throw new HoldfastError('personal_data', undefined, { fields });
}

/**
 * Applies the contract's allow list: what it does not name does not leave. Runs before anything is built.
 * @throws personal_data when what may leave still holds personal data or credentials
 */
export function redact(caseFile: CaseFile, contract: Contract): Redacted {
  const withheld: Withheld[] = caseFile.unlisted.map((path) => ({ path, rule: 'unknown_field' }));
  const keep = (name: Contract['allow'][number], isEmpty: boolean): boolean => {
    const allowed = contract.allow.includes(name);
    if (!allowed && !isEmpty) withheld.push({ path: name, rule: 'not_in_contract' });
    return allowed && !isEmpty;
  };
  const list = (name: 'done' | 'remaining' | 'open_questions') =>
    keep(name, caseFile[name].length === 0) ? caseFile[name] : [];

  const facts = caseFile.facts.filter((fact) => Object.hasOwn(contract.facts, fact.key));
  for (const fact of caseFile.facts) {
    if (!facts.includes(fact))
      withheld.push({ path: `facts.${redactText(fact.key).text}`, rule: 'not_in_contract' });
  }
  const { deadline, caps, prohibitions } = caseFile.constraints;
  const unbound = deadline === undefined && Object.keys(caps).length === 0 && prohibitions.length === 0;
  const { artifact, source_task_id } = caseFile;
  const redacted: Redacted = {
    facts,
    // An envelope always has a goal; the contract's own purpose tells nothing about the case.
    goal: keep('goal', false) ? caseFile.goal : contract.purpose,
    done: list('done'),
    remaining: list('remaining'),
    open_questions: list('open_questions'),
    constraints: keep('constraints', unbound) ? caseFile.constraints : { caps: {}, prohibitions: [] },
    ...(artifact !== undefined && keep('artifact', false) ? { artifact } : {}),
    ...(source_task_id !== undefined && keep('source_task_id', false) ? { source_task_id } : {}),
    withheld,
  };
  refusePersonalData(contract, redacted);
  return redacted;
}
