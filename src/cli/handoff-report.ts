import { parseRejectionPart, type RejectionPart } from '../envelope/index.js';
import type { HandOffResult } from '../handoff/index.js';
import type { CandidatePlan, DecisionRow, OfferRow, SentTask } from '../ledger/index.js';
import { describeCandidate } from './attention-handoffs.js';
import { EXIT, type ExitCode } from './exit-codes.js';
import { oneLine, printFields, printTable } from './print.js';
import type { Result } from './run.js';

const RESULT_EXIT: Readonly<Record<HandOffResult['state'], ExitCode>> = {
  accepted: EXIT.ok,
  rejected: EXIT.rejected,
  withdrawn: EXIT.refused,
  expired: EXIT.refused,
  open: EXIT.undecided,
};

/** What is most often amiss where a receiver does not know the case. */
const TWO_LEDGERS =
  'if the receiver has a ledger of its own, the kind needs `mode: separate` in both configurations.';

/** What a person and a program are told of how a handover ended, or that it has not. */
export function reportOf(result: HandOffResult): Result {
  const { offer, ...rest } = result;
  return {
    json: { ...rest, offer: withoutMessage(offer) },
    text: sentenceOf(result),
    exit: RESULT_EXIT[result.state],
  };
}

function sentenceOf(result: HandOffResult): string {
  const name = `${result.offer.key.handoffId}, attempt ${result.offer.key.attempt}`;
  switch (result.state) {
    case 'accepted':
      return `Accepted: ${result.owner} owns ${result.offer.ref.caseId} at epoch ${result.epoch} (${name}${result.workItem === null ? '' : `; work item ${result.workItem}`}).`;
    case 'rejected': {
      const fields = result.fields.map(({ path, problem }) => `\n  ${path} ${problem}`).join('');
      const next = result.retryable ? '\nCorrect it and send again: that is the next attempt.' : '';
      const said = result.hint ?? (result.code === 'case_unknown' ? TWO_LEDGERS : null);
      const hint = said === null ? '' : `\nHint: ${said}`;
      return `Rejected (${name}): ${result.reason} [${result.code}]${fields}${hint}\nThe case stays with its owner at epoch ${result.offer.epoch}.${next}`;
    }
    case 'open':
      if (result.offer.state === 'in_doubt') {
        return `In doubt (${name}): the receiver did not answer the withdrawal: ${result.reason} [${result.problem}]\nNobody knows yet whether it owns the case. It is asked until it answers; \`holdfast handoff void ${result.offer.key.handoffId}\` asks now, and \`holdfast attention show ${result.offer.ref.caseId}\` says what can be done.`;
      }
      if (result.problem === null) return waitingSentence(result, name);
      return `Not decided (${name}): ${result.reason} [${result.problem}]\nThe offer stays open. \`holdfast handoff resend ${result.offer.key.handoffId}\` delivers the same bytes again.`;
    case 'withdrawn':
    case 'expired':
      return `The offer (${name}) is closed: ${result.state}. The case stays with its owner at epoch ${result.offer.epoch}.`;
  }
}

function waitingSentence(
  { reason, offer, task }: Extract<HandOffResult, { readonly state: 'open' }>,
  name: string,
): string {
  const { handoffId, attempt } = offer.key;
  const asked = openQuestion(task ?? null);
  const told =
    asked === null
      ? `It may take until ${offer.acceptBy}; a running node of this agent asks on.`
      : `Question ${asked.n}: ${oneLine(asked.text)}\n\`holdfast handoff answer ${handoffId} --attempt ${attempt}\` answers it.`;
  return `Not decided (${name}; task ${task?.taskId}, ${shortState(task ?? null)}): ${reason}\n${told}`;
}

/** What waits for an answer of this agent. */
export function openQuestion(task: SentTask | null): SentTask['question'] {
  if (task === null || shortState(task) !== 'INPUT_REQUIRED') return null;
  return task.answer?.n === task.question?.n ? null : task.question;
}

/** A2A's name of the state, as people read it. */
export function shortState(task: SentTask | null): string | null {
  return task?.state.replace('TASK_STATE_', '') ?? null;
}

/** Without the message, which holds the content, as a document where one offer is asked for. */
export function withoutMessage({ message, receiptKey: _, ...offer }: OfferRow) {
  return { ...offer, message_bytes: Buffer.byteLength(message) };
}

/** What the ledger holds on an offer besides it. */
export interface OfferContext {
  readonly decision: DecisionRow | null;
  readonly task: SentTask | null;
  /** The list of candidates that it is, or was, one of. */
  readonly plan: CandidatePlan | null;
}

/** One offer with the decision that the ledger holds on it. */
export function describeOffer(offer: OfferRow, { decision, task, plan }: OfferContext): Result {
  const rejection = decision && decision.verdict !== 'accepted' ? rejectionOf(decision) : null;
  const verified = offer.receipt !== null;
  const answer =
    decision?.verdict === 'accepted'
      ? { verdict: 'accepted', receipt_verified: verified }
      : rejection && {
          verdict: decision?.verdict,
          code: rejection.code,
          reason: rejection.reason,
          fields: rejection.fields,
          hint: rejection.hint ?? null,
          retryable: rejection.retryable,
        };
  return {
    json: {
      offer: withoutMessage(offer),
      decision: answer && { ...answer, at: decision?.decidedAt },
      task: task && { ...task, answer: task.answer && { n: task.answer.n } },
      plan,
    },
    text: [
      printFields([
        ['handoff', offer.key.handoffId],
        ['attempt', offer.key.attempt],
        ['root', offer.key.root],
        ['from', offer.key.sender],
        ['to', offer.toAgent],
        ['contract', offer.contract],
        ['state', offer.state],
        ['code', rejection?.code ?? offer.code],
        ['reason', rejection?.reason],
        ...(rejection?.fields ?? []).map(({ path, problem }) => ['field', `${path} ${problem}`] as const),
        ['hint', rejection?.hint],
        ['retryable', rejection && (rejection.retryable ? 'yes, corrected, as the next attempt' : 'no')],
        ['epoch', offer.epoch],
        ['digest', offer.digest],
        ['accept by', offer.acceptBy],
        ['intended', offer.intendedAt],
        ['closed', offer.closedAt],
        [
          'receipt',
          decision?.verdict === 'accepted' || verified ? (verified ? 'verified' : 'not verified yet') : null,
        ],
        // Once the offer is closed nobody reads the task any more, and its state is an old one.
        ['task', task && (offer.closedAt === null ? `${task.taskId}, ${shortState(task)}` : task.taskId)],
        ['question', task?.question && `${task.question.n}: ${task.question.text}`],
        ['answered', task?.answer && `question ${task.answer.n}`],
        ['plan', plan && [plan.state, plan.reason].filter(Boolean).join(': ')],
        ...(plan?.candidates ?? []).map((one) => ['candidate', describeCandidate(one)] as const),
        ['escalates to', plan?.escalateTo],
      ]),
      ...(offer.withheld.length === 0
        ? []
        : [
            '',
            'Kept back',
            printTable(
              ['PATH', 'RULE'],
              offer.withheld.map(({ path, rule }) => [path, rule]),
            ),
          ]),
    ].join('\n'),
  };
}

/** What is said of a void that found the offer decided already; `null` where it was in time. */
export function tooLate(result: HandOffResult): string | null {
  const { handoffId, attempt } = result.offer.key;
  const name = `${handoffId}, attempt ${attempt}`;
  if (result.state === 'accepted') {
    return `Too late: it was accepted (${name}). ${result.owner} owns ${result.offer.ref.caseId} at epoch ${result.epoch}.`;
  }
  if (result.state === 'rejected') {
    return `Too late: it was rejected (${name}): ${result.reason} [${result.code}]\nThe case stays with its owner at epoch ${result.offer.epoch}.`;
  }
  return null;
}

function rejectionOf({ answer }: DecisionRow): RejectionPart {
  return parseRejectionPart(JSON.parse(answer));
}
