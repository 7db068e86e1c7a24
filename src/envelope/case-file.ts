import * as z from 'zod';
import {
  DEFAULT_LIMITS,
  type FieldError,
  HoldfastError,
  isHoldfastError,
  isJsonObject,
  type JsonValue,
  type Limits,
  parseStrictJson,
  parseUtc,
} from '../core/index.js';
import * as form from './forms.js';
import type { Fact, HandoffEnvelope } from './model.js';
import { redactText } from './privacy.js';
import { fieldsOf } from './problems.js';

/** What the owner's agent knows of a case, before the contract says what of it may leave. */
export interface CaseFile
  extends Pick<
    HandoffEnvelope,
    | 'case_id'
    | 'kind'
    | 'goal'
    | 'done'
    | 'remaining'
    | 'facts'
    | 'open_questions'
    | 'constraints'
    | 'required_output'
    | 'artifact'
    | 'source_task_id'
  > {
  /** Paths of everything else in the file; their values are not even kept. */
  readonly unlisted: readonly string[];
}

const realTime = form.utc.refine((text) => parseUtc(text) !== null, 'names a day that does not exist');
const fact = z.object({
  ...form.fact.shape,
  source: form.text(100).optional(),
  observed_at: realTime.exactOptional(),
});
const sourcedFact = z.strictObject({ ...form.fact.shape, observed_at: realTime.exactOptional() });
const constraints = z.object({
  deadline: realTime.exactOptional(),
  caps: z.record(form.operation, form.money).default({}),
  prohibitions: z.array(form.operation).max(50).default([]),
});
const artifact = z.object(form.artifactPointer.shape);

const schema = z.object({
  case_id: form.caseId,
  kind: form.kind,
  goal: form.text(500),
  done: form.textList.default([]),
  remaining: form.textList.default([]),
  facts: z.array(fact).max(200).default([]),
  open_questions: form.textList.default([]),
  constraints: constraints.default({ caps: {}, prohibitions: [] }),
  required_output: form.nameVersion.exactOptional(),
  artifact: artifact.exactOptional(),
  source_task_id: form.opaqueId.exactOptional(),
});

function isSourced(given: z.infer<typeof fact>): given is Fact {
  return given.source !== undefined;
}

function unlistedIn(value: unknown, known: object, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.keys(value)
    .filter((key) => !Object.hasOwn(known, key))
    .map((key) => `${path}${redactText(key).text}`);
}

function findUnlisted(file: { facts?: unknown; constraints?: unknown; artifact?: unknown }): string[] {
  const facts = Array.isArray(file.facts) ? file.facts : [];
  return [
    ...unlistedIn(file, schema.shape, ''),
    ...facts.flatMap((each, at) => unlistedIn(each, fact.shape, `facts.${at}.`)),
    ...unlistedIn(file.constraints, constraints.shape, 'constraints.'),
    ...unlistedIn(file.artifact, artifact.shape, 'artifact.'),
  ];
}

function readJson(bytes: Uint8Array, limits: Limits): JsonValue {
  try {
    return parseStrictJson(bytes, limits);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    const { problem, at } = error.data;
    throw new HoldfastError(
      'case_file_invalid',
      `The case file is not strict JSON: ${problem} at byte ${at}.`,
      {
        data: error.data,
      },
    );
  }
}

/** A fact whose source is absent, null or empty is its own error: the cure is to find out who says so. */
function findUnsourced(value: JsonValue): FieldError[] {
  const facts = isJsonObject(value) ? value.facts : [];
  if (!Array.isArray(facts)) return [];
  return facts.flatMap((each, at) => {
    const unsourced =
      isJsonObject(each) && (each.source === undefined || each.source === null || each.source === '');
    return unsourced ? [{ path: `facts.${at}.source`, problem: 'is required' }] : [];
  });
}

function judge(value: JsonValue): CaseFile {
  const unsourced = findUnsourced(value);
  if (unsourced.length > 0) throw new HoldfastError('fact_unsourced', undefined, { fields: unsourced });
  const result = schema.safeParse(value);
  if (!result.success) {
    throw new HoldfastError('case_file_invalid', undefined, { fields: fieldsOf(result.error) });
  }
  const unlisted = findUnlisted(value as object);
  return { ...result.data, facts: result.data.facts.filter(isSourced), unlisted };
}

/**
 * Reads a case file from its JSON. Keys that it does not know are kept as paths only.
 * @throws case_file_invalid, fact_unsourced
 */
export function parseCaseFile(json: Uint8Array | string, limits: Limits = DEFAULT_LIMITS): CaseFile {
  const bytes = typeof json === 'string' ? new TextEncoder().encode(json) : json;
  if (!(bytes instanceof Uint8Array)) {
    throw new HoldfastError('case_file_invalid', 'A case file is read from its JSON, as bytes or as a text.');
  }
  return judge(readJson(bytes, limits));
}

/**
 * The same for a case file that is an object already, be it one that was read before or the plain value of its JSON.
 * @throws case_file_invalid, fact_unsourced
 */
export function checkCaseFile(file: CaseFile | Readonly<Record<string, unknown>>): CaseFile {
  const { unlisted, ...rest } = file;
  const known = isPaths(unlisted) ? unlisted : null;
  const judged = judge(asJson(known ? rest : file));
  const paths = known?.map((path) => redactText(path).text) ?? [];
  return { ...judged, unlisted: [...paths, ...judged.unlisted] };
}

/** Facts that somebody else's code has found, each in the form that it has in an envelope. @throws reader_failed */
export function checkFacts(facts: unknown): Fact[] {
  const result = z.array(sourcedFact).max(100).safeParse(facts);
  if (result.success) return result.data;
  throw new HoldfastError('reader_failed', undefined, { fields: fieldsOf(result.error) });
}

function isPaths(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((path) => typeof path === 'string');
}

/** As it would be read back: only then is what was judged also what leaves. */
function asJson(value: object): JsonValue {
  try {
    return JSON.parse(JSON.stringify(value));
  } catch (cause) {
    throw new HoldfastError('case_file_invalid', 'The case file cannot be written as JSON.', { cause });
  }
}
