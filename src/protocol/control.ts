import {
  AGENT_URL_PATTERN,
  CASE_ID_PATTERN,
  type FieldError,
  HANDOFF_ID_PATTERN,
  HoldfastError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  MAX_FIELD_ERRORS,
  newId,
  SHA256_PATTERN,
  UTC_PATTERN,
} from '../core/index.js';
import {
  type AnswerTo,
  type ControlAnswer,
  type ControlRequest,
  type LedgerAnnouncement,
  MAX_CONTROL_DECISIONS,
  MAX_CONTROL_RECEIPTS,
  MAX_HELD_OFFERS,
  MAX_QUESTION_CHARS,
} from './control-documents.js';
import { bareMediaType } from './media-type.js';
import { CONTROL_MEDIA_TYPE, EXTENSION_URI } from './names.js';
import { type Check, isFlag, isList, isObject, matching, oneOf, problemsOf, type Shape } from './shape.js';
import type { Message, Part } from './wire.js';

/* Control messages on the wire: read strictly, written as one data part. */

/** So that every ledger can hold it. */
const MAX_ATTEMPT = 2 ** 31 - 1;

const isRoot = matching(AGENT_URL_PATTERN, 'must be the URL of the node that opened the case');
const isHandoffId = matching(HANDOFF_ID_PATTERN, 'must be case_id:epoch+1');
const isCaseId = matching(CASE_ID_PATTERN, 'must be a case id');
const isAttempt: Check = (value) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_ATTEMPT
    ? null
    : 'must be a whole number from 1';

const ATTEMPT: Shape = { root: isRoot, handoff_id: isHandoffId, attempt: isAttempt };
const CASE: Shape = { root: isRoot, case_id: isCaseId };
const DECISION: Shape = {
  handoff_id: isHandoffId,
  attempt: isAttempt,
  verdict: oneOf('accepted', 'rejected', 'withdrawn'),
  decided_at: matching(UTC_PATTERN, 'must be a UTC time'),
  answer: isObject,
};
const isTaskId = matching(/^[!-~]{1,200}$/, 'must be the id of a task');
const OPTIONAL: Shape = {
  digest: matching(SHA256_PATTERN, 'must be a SHA-256 in lower-case hex'),
  task_id: isTaskId,
};
const QUESTION: Shape = {
  n: isAttempt,
  question: matching(
    new RegExp(`^[\\s\\S]{1,${MAX_QUESTION_CHARS}}$`, 'u'),
    `must be 1 to ${MAX_QUESTION_CHARS} characters`,
  ),
};
/** Only of an offer that is stored undecided. */
const UNDECIDED: Shape = { task_id: isTaskId, question: isObject };

const isCursor = matching(/^[A-Za-z0-9_-]{1,2000}$/, 'must be a cursor that was given out');
const ANNOUNCEMENT: Shape = {
  incarnation: matching(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/, 'must be the name of an incarnation'),
  since: matching(UTC_PATTERN, 'must be a UTC time'),
  open: isList,
};

/** What each verb takes, in one of these shapes. */
const VERBS: Readonly<Record<ControlRequest['verb'], readonly [Shape, ...Shape[]]>> = {
  'handoff.query': [ATTEMPT, CASE],
  'handoff.withdraw': [ATTEMPT],
  'ledger.announce': [ANNOUNCEMENT],
};

/** What a verb may carry besides. */
const MORE: Readonly<Partial<Record<ControlRequest['verb'], Shape>>> = {
  'handoff.withdraw': {
    takeover: matching(
      /^(?=[\s\S]{1,8000}$)[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/,
      'must be a compact JWS',
    ),
  },
  'ledger.announce': { cursor: isCursor },
};

function invalid(fields: readonly FieldError[]): HoldfastError {
  return new HoldfastError('control_invalid', undefined, {
    fields: fields.slice(0, MAX_FIELD_ERRORS),
    data: { problems: fields.length },
  });
}

/** The document in the message's one part. */
function documentIn(parts: readonly Part[]): JsonObject {
  const [part] = parts;
  if (part === undefined || parts.length > 1) {
    throw invalid([{ path: 'message.parts', problem: 'must be exactly one part' }]);
  }
  if (bareMediaType(part.mediaType ?? '') !== CONTROL_MEDIA_TYPE) {
    throw invalid([{ path: 'message.parts.0.mediaType', problem: `must be ${CONTROL_MEDIA_TYPE}` }]);
  }
  if (!isJsonObject(part.data)) {
    throw invalid([{ path: 'message.parts.0.data', problem: 'must be an object' }]);
  }
  return part.data;
}

/** @throws control_invalid naming up to three fields, verb_unknown */
export function parseControlRequest({ parts }: Pick<Message, 'parts'>): ControlRequest {
  const document = documentIn(parts);
  const { verb } = document;
  if (typeof verb !== 'string') throw invalid([{ path: 'verb', problem: 'must be the name of a verb' }]);
  if (!Object.hasOwn(VERBS, verb)) {
    throw new HoldfastError('verb_unknown', undefined, { data: { known: Object.keys(VERBS).join(', ') } });
  }
  const [first, second] = VERBS[verb as ControlRequest['verb']];
  const shape = second !== undefined && Object.hasOwn(document, 'case_id') ? second : first;
  const problems = problemsOf(
    document,
    { verb: oneOf(verb), ...shape },
    MORE[verb as ControlRequest['verb']],
  );
  if (problems.length === 0 && verb === 'ledger.announce') problems.push(...heldProblems(document.open));
  if (problems.length > 0) throw invalid(problems);
  return document as unknown as ControlRequest;
}

/** An A2A message that holds this document and nothing else. */
export function controlMessage(
  document: ControlRequest | ControlAnswer,
  role: Message['role'] = 'ROLE_USER',
): Message {
  return {
    messageId: newId('control'),
    role,
    extensions: [EXTENSION_URI],
    parts: [{ data: document as unknown as JsonObject, mediaType: CONTROL_MEDIA_TYPE }],
  };
}

/**
 * Reads an answer strictly, and only as the answer to this request.
 * @throws peer_error: it decides nothing
 */
export function parseControlAnswer<R extends ControlRequest>(
  { parts }: Pick<Message, 'parts'>,
  request: R,
): AnswerTo<R> {
  try {
    const document = documentIn(parts);
    const problems = answerProblems(document, request);
    if (problems.length > 0) throw invalid(problems);
    return document as unknown as AnswerTo<R>;
  } catch (cause) {
    throw new HoldfastError('peer_error', 'The peer answered a control message in another form.', { cause });
  }
}

function heldProblems(open: JsonValue | undefined): FieldError[] {
  const held = open as JsonValue[];
  if (held.length > MAX_HELD_OFFERS) {
    return [{ path: 'open', problem: `must hold at most ${MAX_HELD_OFFERS}` }];
  }
  return held.flatMap((one, at) =>
    isJsonObject(one)
      ? problemsOf(one, ATTEMPT, {}, `open.${at}.`)
      : [{ path: `open.${at}`, problem: 'must be an object' }],
  );
}

function receiptProblems(document: JsonObject, { incarnation }: LedgerAnnouncement): FieldError[] {
  const asked: Shape = {
    verb: oneOf('ledger.announce'),
    incarnation: (given) => (given === incarnation ? null : 'is not what was announced'),
    receipts: isList,
  };
  const problems = problemsOf(document, asked, { next: isCursor });
  if (problems.length > 0) return problems;
  const receipts = document.receipts as JsonValue[];
  return receipts.length <= MAX_CONTROL_RECEIPTS && receipts.every((one) => typeof one === 'string')
    ? []
    : [{ path: 'receipts', problem: `must be at most ${MAX_CONTROL_RECEIPTS} receipts` }];
}

function answerProblems(document: JsonObject, request: ControlRequest): FieldError[] {
  if (request.verb === 'ledger.announce') return receiptProblems(document, request);
  const asked = Object.fromEntries(
    Object.entries(request)
      .filter(([name]) => name !== 'takeover')
      .map(([name, value]): [string, Check] => [
        name,
        (given) => (given === value ? null : 'is not what was asked about'),
      ]),
  );
  if ('case_id' in request) {
    const problems = problemsOf(document, { ...asked, decisions: isList, more: isFlag });
    if (problems.length > 0) return problems;
    const decisions = document.decisions as JsonValue[];
    if (decisions.length > MAX_CONTROL_DECISIONS) {
      return [{ path: 'decisions', problem: `must hold at most ${MAX_CONTROL_DECISIONS}` }];
    }
    return decisions.flatMap((one, at) => decisionProblems(one, `decisions.${at}.`));
  }
  const states = request.verb === 'handoff.withdraw' ? ['decided'] : ['decided', 'deciding', 'none'];
  const decided = document.state === 'decided';
  const shape = { ...asked, state: oneOf(...states), ...(decided ? { decision: isObject } : {}) };
  const problems = problemsOf(document, shape, document.state === 'deciding' ? UNDECIDED : {});
  if (problems.length > 0) return problems;
  if (isJsonObject(document.question)) return problemsOf(document.question, QUESTION, {}, 'question.');
  if (!decided) return [];
  const { handoff_id, attempt } = document.decision as JsonObject;
  if (handoff_id !== request.handoff_id || attempt !== request.attempt) {
    return [{ path: 'decision', problem: 'is about another attempt' }];
  }
  return decisionProblems(document.decision as JsonValue, 'decision.');
}

function decisionProblems(value: JsonValue, at: string): FieldError[] {
  if (!isJsonObject(value)) return [{ path: at.slice(0, -1), problem: 'must be an object' }];
  return problemsOf(value, DECISION, OPTIONAL, at);
}
