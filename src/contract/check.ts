import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type ErrorCode, type FieldError, HoldfastError, type Money, tidy } from '../core/index.js';
import type { Contract, FactRule } from './model.js';

/** What a contract judges of an envelope, in the envelope's own names. */
export interface ContractSubject {
  readonly facts: readonly {
    readonly key: string;
    readonly value: unknown;
    readonly source: string;
    readonly verified: boolean;
  }[];
  readonly constraints: {
    readonly deadline?: string;
    readonly caps: Readonly<Record<string, Money>>;
    readonly prohibitions: readonly string[];
  };
  readonly references: readonly { readonly media_type: string; readonly bytes: number }[];
  readonly required_output?: string;
}

type Fact = ContractSubject['facts'][number];

interface Problem {
  readonly code: ErrorCode;
  readonly path: string;
  readonly problem: string;
}

/** A schema's own words can quote what was received. */
const MAX_CHARS = 200;

function pathOf(issue: StandardSchemaV1.Issue): string {
  return (issue.path ?? [])
    .map((segment) => `.${String(typeof segment === 'object' ? segment.key : segment)}`)
    .join('');
}

function fieldOf(base: string, issue: StandardSchemaV1.Issue): FieldError {
  return { path: tidy(`${base}${pathOf(issue)}`, MAX_CHARS), problem: tidy(issue.message, MAX_CHARS) };
}

function checkSource(rule: FactRule, fact: Fact): Problem[] {
  const problems: Problem[] = [];
  const path = `facts.${fact.key}`;
  if (rule.verified && !fact.verified) {
    problems.push({ code: 'fact_unverified', path: `${path}.verified`, problem: 'must be true' });
  }
  if (rule.sources !== undefined && !rule.sources.includes(fact.source)) {
    const problem = `must be one of ${rule.sources.join(', ')}`;
    problems.push({ code: 'fact_unverified', path: `${path}.source`, problem });
  }
  return problems;
}

async function checkFacts(
  contract: Contract,
  facts: readonly Fact[],
): Promise<{ problems: Problem[]; outputs: Record<string, unknown> }> {
  const problems: Problem[] = [];
  const outputs: Record<string, unknown> = {};
  const seen = new Set<string>();
  for (const fact of facts) {
    const path = `facts.${fact.key}`;
    const rule = Object.hasOwn(contract.facts, fact.key) ? contract.facts[fact.key] : undefined;
    if (rule === undefined) {
      problems.push({ code: 'fact_invalid', path, problem: 'is not a fact of the contract' });
      continue;
    }
    if (seen.has(fact.key)) problems.push({ code: 'fact_invalid', path, problem: 'is given twice' });
    seen.add(fact.key);
    problems.push(...checkSource(rule, fact));
    // A copy, so that a schema that transforms in place cannot change what was received and hashed.
    const value = typeof fact.value === 'object' ? structuredClone(fact.value) : fact.value;
    const result = await rule.schema['~standard'].validate(value);
    if (result.issues === undefined) outputs[fact.key] = result.value;
    for (const issue of result.issues ?? []) {
      problems.push({ code: 'fact_invalid', ...fieldOf(`${path}.value`, issue) });
    }
  }
  return { problems, outputs };
}

function missingFacts(contract: Contract, facts: readonly Fact[]): Problem[] {
  return Object.keys(contract.facts)
    .filter((key) => contract.facts[key]?.required && !facts.some((fact) => fact.key === key))
    .map((key) => ({ code: 'fact_missing', path: `facts.${key}`, problem: 'is required' }));
}

/**
 * Judges the facts of an answer as those of an envelope; which of them it holds is its sender's choice. Returns the outputs by fact key.
 * @throws answer_invalid naming every field that the contract does not let cross
 */
export async function checkAnswer(
  contract: Contract,
  facts: ContractSubject['facts'],
): Promise<Record<string, unknown>> {
  const { problems, outputs } = await checkFacts(contract, facts);
  if (problems.length === 0) return outputs;
  throw new HoldfastError('answer_invalid', undefined, {
    fields: problems.map(({ path, problem }) => ({ path, problem })),
    data: { contract: contract.id, problems: problems.length },
  });
}

function checkConstraints(contract: Contract, given: ContractSubject['constraints']): Problem[] {
  const required = contract.constraints;
  const paths = [
    ...(required.deadline && given.deadline === undefined ? ['constraints.deadline'] : []),
    ...required.caps
      .filter((each) => !Object.hasOwn(given.caps, each))
      .map((each) => `constraints.caps.${each}`),
    ...required.prohibitions
      .filter((each) => !given.prohibitions.includes(each))
      .map((each) => `constraints.prohibitions.${each}`),
  ];
  return paths.map((path) => ({ code: 'constraint_missing', path, problem: 'is required' }));
}

function checkReferences(contract: Contract, references: ContractSubject['references']): Problem[] {
  const { min, max, mediaTypes, maxBytes } = contract.evidence;
  const problems: Problem[] = [];
  if (references.length < min) {
    const problem = `must hold at least ${min}, and holds ${references.length}`;
    problems.push({ code: 'evidence_empty', path: 'references', problem });
  }
  if (references.length > max) {
    const problem = `must hold at most ${max}, and holds ${references.length}`;
    problems.push({ code: 'schema_invalid', path: 'references', problem });
  }
  references.forEach((reference, index) => {
    const path = `references.${index}`;
    if (!mediaTypes.includes(reference.media_type.toLowerCase())) {
      const problem = `must be one of ${mediaTypes.join(', ')}`;
      problems.push({ code: 'evidence_media_type', path: `${path}.media_type`, problem });
    }
    if (reference.bytes > maxBytes) {
      problems.push({
        code: 'evidence_too_large',
        path: `${path}.bytes`,
        problem: `must be at most ${maxBytes}`,
      });
    }
    if (reference.bytes === 0) {
      problems.push({ code: 'evidence_empty', path: `${path}.bytes`, problem: 'must not be 0' });
    }
  });
  return problems;
}

/**
 * Judges facts, constraints and references by the contract: at the sender before anything is sent, at the receiver on what
 * came. Returns the validated outputs by fact key, for convenience only: what was received stays what counts.
 * @throws fact_invalid, fact_unverified, fact_missing, constraint_missing, evidence_empty, evidence_media_type,
 *   evidence_too_large, schema_invalid: the first problem decides the code, `fields` names all
 */
export async function checkContract(
  contract: Contract,
  subject: ContractSubject,
): Promise<Record<string, unknown>> {
  const { problems, outputs } = await checkFacts(contract, subject.facts);
  problems.push(...missingFacts(contract, subject.facts));
  problems.push(...checkConstraints(contract, subject.constraints));
  problems.push(...checkReferences(contract, subject.references));
  if (subject.required_output !== contract.requiredOutput) {
    const problem = `must be ${contract.requiredOutput ?? 'absent'}`;
    problems.push({ code: 'schema_invalid', path: 'required_output', problem });
  }
  const [first] = problems;
  if (first === undefined) return outputs;
  throw new HoldfastError(first.code, undefined, {
    fields: problems.map(({ path, problem }) => ({ path, problem })),
    data: { contract: contract.id, problems: problems.length },
  });
}

/**
 * Judges what came of the work by the contract's `output`; a contract without one takes anything, and nothing too.
 * @throws output_invalid naming every field that does not fit
 */
export async function checkOutput({ id, output }: Contract, result: unknown): Promise<void> {
  if (output === undefined) return;
  const fields =
    result === undefined
      ? [{ path: 'result', problem: 'is required' }]
      : // A copy, as with facts: what was given stays as it is.
        ((await output['~standard'].validate(structuredClone(result))).issues ?? []).map((issue) =>
          fieldOf('result', issue),
        );
  if (fields.length === 0) return;
  throw new HoldfastError('output_invalid', undefined, { fields, data: { contract: id } });
}
