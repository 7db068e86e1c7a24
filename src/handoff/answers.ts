import {
  type AcceptanceKey,
  type CaseRef,
  ERROR_TABLE,
  type FieldError,
  isErrorCode,
  type JsonObject,
  type JsonValue,
  MAX_FIELD_ERRORS,
  newId,
} from '../core/index.js';
import type { ReceiptPart, RejectionPart } from '../envelope/index.js';
import type { DecisionTask } from '../ledger/index.js';
import { RECEIPT_MEDIA_TYPE, REJECTION_MEDIA_TYPE, type Task } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';

/** A verdict before it is stored; `fields` beyond the third are not sent. */
export interface Rejection {
  readonly code: string;
  readonly reason: string;
  readonly fields?: readonly FieldError[];
  readonly hint?: string;
  readonly data?: Readonly<Record<string, string | number | boolean | null>>;
}

/** A `reject` verdict of a contract or handler on its way out of the pipeline. */
export class ContractRefusal extends Error {
  constructor(readonly rejection: Rejection) {
    super(rejection.reason);
  }
}

/** One arrival of an offer: enough to find and answer what was decided about it. */
export interface Delivery {
  readonly key: AcceptanceKey;
  readonly ref: CaseRef;
  readonly digest: string;
  readonly principal: Principal;
}

const MAX_REASON_CHARS = 2000;
const MAX_FIELD_CHARS = 500;

/** What a user's check says can be anything; what is sent must be readable at the other side, and is never empty there. */
export function clip(text: string, maxChars: number, absent: string): string {
  const readable = text.slice(0, maxChars).replace(/[^\P{Cc}\t\n\r]|\p{Surrogate}/gu, '?');
  return readable === '' ? absent : readable;
}

/** `final` is true only where the rejection is stored and so closes the offer. */
export function rejectionPart(
  rejection: Rejection,
  offer: Pick<Delivery, 'key' | 'ref'> | null,
  final: boolean,
): RejectionPart {
  const retryable = isErrorCode(rejection.code) ? ERROR_TABLE[rejection.code].retry !== 'never' : true;
  return {
    accepted: false,
    ...(offer && {
      root: offer.ref.root,
      case_id: offer.ref.caseId,
      handoff_id: offer.key.handoffId,
      attempt: offer.key.attempt,
    }),
    code: rejection.code,
    reason: clip(rejection.reason, MAX_REASON_CHARS, 'No reason was given.'),
    fields: (rejection.fields ?? []).slice(0, MAX_FIELD_ERRORS).map(({ path, problem }) => ({
      path: clip(path, MAX_FIELD_CHARS, '.'),
      problem: clip(problem, MAX_FIELD_CHARS, 'is not valid'),
    })),
    retryable,
    ...(rejection.hint ? { hint: clip(rejection.hint, MAX_FIELD_CHARS, '') } : {}),
    final,
  };
}

/** The task that carries a decision as its one artifact; results are artifacts, never status messages. */
export function decisionTask(
  part: ReceiptPart | RejectionPart,
  at: string,
  id = newId('task'),
): DecisionTask {
  const accepted = part.accepted;
  const task: Task = {
    id,
    contextId: newId('ctx'),
    status: { state: accepted ? 'TASK_STATE_COMPLETED' : 'TASK_STATE_REJECTED', timestamp: at },
    artifacts: [
      {
        artifactId: accepted ? 'receipt' : 'rejection',
        name: accepted ? 'Handoff receipt' : 'Handoff rejection',
        parts: [
          {
            data: part as unknown as JsonObject,
            mediaType: accepted ? RECEIPT_MEDIA_TYPE : REJECTION_MEDIA_TYPE,
          },
        ],
      },
    ],
  };
  return {
    id,
    contextId: task.contextId,
    state: task.status.state,
    statusAt: at,
    task: JSON.stringify(task),
  };
}

/** The data part with this media type among a task's artifacts, if there is exactly one. */
export function answerPart(task: Task, mediaType: string): JsonValue {
  const parts = (task.artifacts ?? [])
    .flatMap((artifact) => artifact.parts)
    .filter((part) => part.mediaType === mediaType && part.data !== undefined);
  return (parts.length === 1 ? parts[0]?.data : undefined) ?? null;
}

export function keyText(key: AcceptanceKey): string {
  return JSON.stringify([key.tenant, key.root, key.sender, key.handoffId, key.attempt]);
}
