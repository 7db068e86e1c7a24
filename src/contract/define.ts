import {
  CODE_PATTERN,
  CONTRACT_ID_PATTERN,
  type FieldError,
  HoldfastError,
  isErrorCode,
  MEDIA_TYPE_PATTERN,
  OPERATION_PATTERN,
  SKILL_PATTERN,
} from '../core/index.js';
import type { Contract, ContractDefinition, FactRule } from './model.js';

const KEBAB = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const KEY = /^[a-z][a-z0-9_]{0,63}$/;
const ALLOWED = ['goal', 'done', 'remaining', 'open_questions', 'constraints', 'artifact', 'source_task_id'];
const NAME_LENGTH = 64;
const TEXT_LENGTH = 500;
const MAX_REFERENCES = 50;
const MAX_QUESTIONS = 10;

type Report = (path: string, problem: string) => void;

/** A definition may come from untyped code, so nothing about it is taken on trust. */
type Unchecked<T> = { readonly [K in keyof T]?: unknown };

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.trim() !== '' && value.length <= TEXT_LENGTH;
}

function matches(value: unknown, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}

function isStandardSchema(value: unknown): boolean {
  // Some libraries make schemas callable.
  if (typeof value !== 'function' && !isRecord(value)) return false;
  const standard = (value as { '~standard'?: unknown })['~standard'];
  return isRecord(standard) && standard.version === 1 && typeof standard.validate === 'function';
}

function checkNames(value: unknown, path: string, pattern: RegExp, report: Report): string[] {
  if (!Array.isArray(value)) {
    report(path, 'must be an array');
    return [];
  }
  value.forEach((name, index) => {
    if (!matches(name, pattern)) report(`${path}.${index}`, `must match ${pattern.source}`);
    else if (value.indexOf(name) !== index) report(`${path}.${index}`, 'is named twice');
  });
  return value.filter((name): name is string => typeof name === 'string');
}

function checkSkill(skill: unknown, report: Report): void {
  if (!isRecord(skill)) {
    report('skill', 'must be an object');
    return;
  }
  if (!matches(skill.id, SKILL_PATTERN)) report('skill.id', `must match ${SKILL_PATTERN.source}`);
  for (const name of ['name', 'description'] as const) {
    if (!isText(skill[name])) report(`skill.${name}`, `must be 1 to ${TEXT_LENGTH} characters`);
  }
  const tags = skill.tags;
  if (!Array.isArray(tags) || tags.length === 0 || !tags.every(isText)) {
    report('skill.tags', 'must hold at least one text; an Agent Card requires it');
  }
}

function checkFact(rule: unknown, path: string, report: Report): void {
  if (!isRecord(rule)) {
    report(path, 'must be an object');
    return;
  }
  const { schema, required, verified, sources, loggable, personal, why }: Unchecked<FactRule> = rule;
  if (!isStandardSchema(schema)) report(`${path}.schema`, 'must be a Standard Schema (version 1)');
  if (typeof required !== 'boolean') report(`${path}.required`, 'must be true or false');
  for (const [name, flag] of Object.entries({ verified, loggable, personal })) {
    if (flag !== undefined && typeof flag !== 'boolean') report(`${path}.${name}`, 'must be true or false');
  }
  if (sources !== undefined && !(Array.isArray(sources) && sources.length > 0 && sources.every(isText))) {
    report(`${path}.sources`, 'must name at least one source; leave it out to allow any');
  }
  if (!isText(why)) report(`${path}.why`, 'must say why it crosses as a value or as a reference');
  if (personal === true && loggable === true) report(`${path}.loggable`, 'must not be set on personal data');
}

function checkConstraints(definition: Unchecked<ContractDefinition>, report: Report): void {
  const operations = checkNames(definition.operations, 'operations', OPERATION_PATTERN, report);
  const constraints = definition.constraints;
  if (!isRecord(constraints)) {
    report('constraints', 'must be an object');
    return;
  }
  if (typeof constraints.deadline !== 'boolean') report('constraints.deadline', 'must be true or false');
  const caps = checkNames(constraints.caps, 'constraints.caps', OPERATION_PATTERN, report);
  caps.forEach((operation, index) => {
    if (!operations.includes(operation)) report(`constraints.caps.${index}`, 'is not among the operations');
  });
  const prohibitions = checkNames(
    constraints.prohibitions,
    'constraints.prohibitions',
    OPERATION_PATTERN,
    report,
  );
  prohibitions.forEach((operation, index) => {
    if (operations.includes(operation))
      report(`constraints.prohibitions.${index}`, 'is among the operations too');
  });
  const required = constraints.deadline === true || caps.length > 0 || prohibitions.length > 0;
  const allowed = Array.isArray(definition.allow) && definition.allow.includes('constraints');
  if (required && !allowed && definition.thin !== true)
    report('allow', 'must name constraints, because the contract requires some of them');
}

function checkEvidence(evidence: unknown, report: Report): void {
  if (!isRecord(evidence)) {
    report('evidence', 'must be an object');
    return;
  }
  const { min, max, mediaTypes, maxBytes } = evidence;
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
  if (!isCount(min)) report('evidence.min', 'must be an integer from 0');
  if (!isCount(max) || max > MAX_REFERENCES)
    report('evidence.max', `must be an integer from 0 to ${MAX_REFERENCES}`);
  else if (isCount(min) && min > max) report('evidence.min', 'must not be above max');
  const types = checkNames(mediaTypes, 'evidence.mediaTypes', MEDIA_TYPE_PATTERN, report);
  if (types.length === 0 && max !== 0) report('evidence.mediaTypes', 'must name at least one media type');
  if (!isCount(maxBytes) || maxBytes === 0) report('evidence.maxBytes', 'must be a positive number of bytes');
}

/** Nothing of the case crosses under a thin contract, so it cannot ask for what only an envelope brings. */
function checkThin({ allow, constraints, evidence }: Unchecked<ContractDefinition>, report: Report): void {
  if (Array.isArray(allow) && allow.length > 0) report('allow', 'must be empty in a thin contract');
  if (isRecord(constraints) && constraints.deadline === true)
    report('constraints.deadline', 'must be false in a thin contract: the policy of a kind has none');
  if (isRecord(evidence) && evidence.max !== 0) report('evidence.max', 'must be 0 in a thin contract');
}

function checkCodes(codes: unknown, report: Report): void {
  if (codes === undefined) return;
  if (!isRecord(codes)) {
    report('codes', 'must be an object');
    return;
  }
  for (const [code, meaning] of Object.entries(codes)) {
    if (!CODE_PATTERN.test(code)) report(`codes.${code}`, `must match ${CODE_PATTERN.source}`);
    if (isErrorCode(code)) report(`codes.${code}`, 'has a meaning already, in the error table');
    if (!isText(meaning)) report(`codes.${code}`, 'must say what it means');
  }
}

function findProblems(definition: Unchecked<ContractDefinition>): FieldError[] {
  const problems: FieldError[] = [];
  const report: Report = (path, problem) => problems.push({ path, problem });
  const { name, version, purpose, thin, facts, requiredOutput, output, questions, accept } = definition;
  if (!matches(name, KEBAB) || name.length > NAME_LENGTH)
    report('name', `must be kebab-case, at most ${NAME_LENGTH} characters`);
  if (!Number.isInteger(version) || Number(version) < 1 || Number(version) > 9999)
    report('version', 'must be an integer from 1');
  checkSkill(definition.skill, report);
  if (!isText(purpose)) report('purpose', `must be 1 to ${TEXT_LENGTH} characters`);
  if (!isRecord(facts)) report('facts', 'must be an object');
  for (const [key, rule] of Object.entries(isRecord(facts) ? facts : {})) {
    if (!KEY.test(key)) report(`facts.${key}`, `must be named like ${KEY.source}`);
    checkFact(rule, `facts.${key}`, report);
  }
  for (const field of checkNames(definition.allow, 'allow', /^[a-z_]+$/, report)) {
    if (!ALLOWED.includes(field)) report('allow', `does not know the field ${field}`);
  }
  checkConstraints(definition, report);
  checkEvidence(definition.evidence, report);
  if (thin !== undefined && typeof thin !== 'boolean') report('thin', 'must be true or false');
  if (thin === true) checkThin(definition, report);
  if (requiredOutput !== undefined && !matches(requiredOutput, CONTRACT_ID_PATTERN))
    report('requiredOutput', 'must be name/version');
  if (output !== undefined && !isStandardSchema(output))
    report('output', 'must be a Standard Schema (version 1)');
  checkCodes(definition.codes, report);
  if (
    questions !== undefined &&
    !(Number.isInteger(questions) && Number(questions) >= 0 && Number(questions) <= MAX_QUESTIONS)
  )
    report('questions', `must be an integer from 0 to ${MAX_QUESTIONS}`);
  if (accept !== undefined && typeof accept !== 'function') report('accept', 'must be a function');
  return problems;
}

function freezeFact(rule: FactRule): FactRule {
  const copy =
    rule.sources === undefined ? { ...rule } : { ...rule, sources: Object.freeze([...rule.sources]) };
  return Object.freeze(copy);
}

/**
 * Checks a contract and makes it unchangeable.
 * @throws contract_invalid naming every problem found
 */
export function defineContract(definition: ContractDefinition): Contract {
  const fields = isRecord(definition)
    ? findProblems(definition)
    : [{ path: '', problem: 'must be an object' }];
  if (fields.length > 0) throw new HoldfastError('contract_invalid', undefined, { fields });
  const { skill, constraints, evidence } = definition;
  const facts = Object.entries(definition.facts).map(([key, rule]) => [key, freezeFact(rule)] as const);
  return Object.freeze({
    ...definition,
    id: `${definition.name}/${definition.version}`,
    skill: Object.freeze({ ...skill, tags: Object.freeze([...skill.tags]) }),
    facts: Object.freeze(Object.fromEntries(facts)),
    allow: Object.freeze([...definition.allow]),
    constraints: Object.freeze({
      ...constraints,
      caps: Object.freeze([...constraints.caps]),
      prohibitions: Object.freeze([...constraints.prohibitions]),
    }),
    operations: Object.freeze([...definition.operations]),
    evidence: Object.freeze({ ...evidence, mediaTypes: Object.freeze([...evidence.mediaTypes]) }),
    ...(definition.codes === undefined ? {} : { codes: Object.freeze({ ...definition.codes }) }),
  });
}
