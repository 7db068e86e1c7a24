import * as z from 'zod';
import { AMOUNT_PATTERN, CURRENCY_PATTERN, HoldfastError } from '../core/index.js';

/*
 * What a caller may pass, for callers that no compiler checks. Only the form: whether a case, a peer or a contract is there, and what
 * a name may look like, is said by those who know. A schema judges and is never used for its output.
 */

const text = z.string('must be a text').min(1, 'must not be empty');
const run = z.custom((value) => typeof value === 'function', 'must be a function');
const shape = <T extends z.core.$ZodLooseShape>(fields: T) => z.looseObject(fields, 'must be an object');

const ref = shape({ tenant: text, root: text, caseId: text });
const key = shape({
  tenant: text,
  root: text,
  sender: text,
  handoffId: text,
  attempt: z.int('must be a whole number'),
});
const epoch = z.int('must be a whole number').min(1, 'must be a whole number from 1');
const money = z.object(
  {
    amount: z
      .string('must be a decimal text such as "49.00"')
      .regex(AMOUNT_PATTERN, 'must be a decimal text'),
    currency: z.string('must be an ISO 4217 code').regex(CURRENCY_PATTERN, 'must be an ISO 4217 code'),
  },
  'must be an object such as { amount: "49.00", currency: "EUR" }',
);
const write = { ref, epoch };
const effect = { key: text, operation: text, amount: money.optional() };
const performed = { ...effect, perform: run, outcome: run.optional(), reconcile: run.optional() };
const byPerson = {
  ref,
  person: text,
  reason: z
    .string('must be a text')
    .trim()
    .min(1, 'must not be empty')
    .max(500, 'must be at most 500 characters'),
};
const resolution = {
  ...byPerson,
  minutes: z.int('must be a whole number').min(0, 'must be a whole number from 0').optional(),
  records: z.array(shape({ name: text, id: text }), 'must be an array').optional(),
};
const stateOf = (states: readonly [string, ...string[]]) =>
  z.enum(states, `must be one of ${states.join(', ')}`);
const artifact = shape({ artifactId: text, version: epoch.optional() });
const content = z.custom(
  (value) =>
    value instanceof Uint8Array ||
    (typeof value === 'object' && value !== null && Symbol.asyncIterator in value),
  'must be bytes or a stream of bytes',
);

const ARGUMENTS = {
  openHoldfast: shape({
    dir: text.optional(),
    handlers: z.record(z.string(), shape({ check: run.optional(), work: run.optional() })).optional(),
    logger: shape({ info: run, warn: run, error: run }).optional(),
  }),
  openCase: shape({
    caseId: text,
    kind: text,
    owner: text.optional(),
    epoch: epoch.optional(),
    importedFrom: text.optional(),
  }),
  caseRef: shape({ caseId: text, root: text.optional() }),
  closeCase: shape({ ...write, person: text.optional() }),
  note: shape({ ...write, person: text.optional(), text: z.string('must be a text') }),
  takeCase: shape({ ...byPerson, epoch, force: z.boolean('must be true or false').optional() }),
  reassignCase: shape({ ...byPerson, epoch, to: text }),
  returnCase: shape({ ...byPerson, epoch }),
  escalate: shape({ key, person: text, reason: byPerson.reason }),
  acceptPending: shape({ key, person: text }),
  rejectPending: shape({
    key,
    person: text,
    code: text,
    reason: byPerson.reason,
    hint: text.optional(),
  }),
  recoverCase: shape({
    ...resolution,
    seenEpoch: epoch.optional(),
    kind: text.optional(),
    owner: text.optional(),
  }),
  waivePeer: shape({ peer: text, person: text, reason: byPerson.reason }),
  resolveEffect: shape({
    ...resolution,
    key: text,
    state: stateOf(['done', 'failed']),
    outcome: z.string('must be a text').optional(),
  }),
  settleDoubt: shape({ ...resolution, key }),
  effect: shape({ ...write, ...performed }),
  startEffect: shape({ ...write, ...effect }),
  settleEffect: shape({
    ...write,
    person: text.optional(),
    key: text,
    state: stateOf(['done', 'failed', 'unknown']),
    outcome: z.string('must be a text').optional(),
  }),
  settleWork: shape({ workId: text, state: stateOf(['done', 'failed']) }),
  statusPointer: ref,
  addEvidence: shape({
    content,
    info: shape({ filename: text, mediaType: text, artifactId: text.optional() }),
  }),
  revokeEvidence: shape({ artifactId: text, version: epoch.optional(), reason: byPerson.reason }),
  checkPeer: shape({ url: text, contract: text }),
  handOff: shape({
    ref,
    caseFile: shape({}).optional(),
    to: z.union([text, z.array(text).min(1)], 'must be a URL or a list of them'),
    escalateTo: text.optional(),
    waiting: stateOf(['blocking', 'queued']).optional(),
    contract: text,
    person: text.optional(),
    evidence: z.array(artifact, 'must be an array').optional(),
    acceptWithinMs: z.number('must be a number of milliseconds').positive().optional(),
    traceparent: text.optional(),
  }),
  answerQuestion: shape({
    key,
    facts: z.array(shape({}), 'must be an array').optional(),
    text: text.optional(),
  }),
  resend: key,
  watchTask: shape({ peer: text, taskId: text }),
  unwatchTask: shape({ watchId: text }),
  onTaskNews: shape({ handler: run }),
  retryNotifications: shape({ tenant: text.optional(), pushId: text.optional(), seq: epoch.optional() }),
  voidOffer: shape({ key, reason: z.string('must be a text') }),
  queryHandoff: z.union(
    [
      shape({ to: text, root: text.optional(), caseId: text }),
      shape({ to: text, root: text.optional(), handoffId: text, attempt: epoch }),
    ],
    'must name `to`, and either `handoffId` with `attempt`, or `caseId`',
  ),
  onCase: shape({ kind: text, reader: run }),
  onHandoff: shape({
    contract: z.union([text, shape({ id: text })], 'must be a contract or its id'),
    handler: shape({ check: run.optional(), work: run.optional() }),
  }),
} as const;

/** Refuses what a call cannot work with, before it does anything. @throws usage naming every argument that is wrong */
export function checkArguments(call: keyof typeof ARGUMENTS, given: unknown): void {
  const result = ARGUMENTS[call].safeParse(given, { reportInput: true });
  if (result.success) return;
  const fields = result.error.issues.map(({ path, message, input }) => ({
    path: path.join('.') || 'argument',
    problem: input === undefined ? 'is required' : message,
  }));
  const problems = fields.map(({ path, problem }) => `${path} ${problem}`).join('; ');
  throw new HoldfastError('usage', `${call}: ${problems}.`, { fields });
}
