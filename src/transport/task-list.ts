import { type ListTasksRequest, type ListTasksResponse, TaskState, taskStateToJSON } from '@a2a-js/sdk';
import { RequestMalformedError } from '@a2a-js/sdk/errors';
import { toUtc } from '../core/index.js';
import type { TaskFilter } from '../ledger/index.js';
import type { Principal } from '../trust/index.js';
import { withHistoryLength } from './codec.js';
import type { LedgerTaskStore } from './task-store.js';

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 100;

type Cursor = NonNullable<TaskFilter['after']>;

function toToken({ statusAt, id }: Cursor): string {
  return Buffer.from(JSON.stringify([statusAt, id])).toString('base64url');
}

function fromToken(token: string): Cursor {
  try {
    const [statusAt, id] = JSON.parse(Buffer.from(token, 'base64url').toString()) as unknown[];
    if (typeof statusAt === 'string' && typeof id === 'string') return { statusAt, id };
  } catch {
    // Not one of ours: the same answer as for a token that decodes to something else.
  }
  throw new RequestMalformedError('pageToken is not one that this agent gave out');
}

/** @throws RequestMalformedError where a number is not a whole one of at least `least` */
export function wholeNumber(name: string, value: unknown, least: number): number | undefined {
  if (value === undefined) return undefined;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least) return value;
  throw new RequestMalformedError(`${name} must be a whole number of at least ${least}`);
}

/** The HTTP+JSON binding hands on arrays where a query names a parameter twice. */
function text(name: string, value: unknown): string {
  if (value === undefined || value === '') return '';
  if (typeof value === 'string') return value;
  throw new RequestMalformedError(`${name} must be given once`);
}

function filterOf(params: ListTasksRequest, principal: Principal, pageSize: number): TaskFilter {
  const contextId = text('contextId', params.contextId);
  const token = text('pageToken', params.pageToken);
  const after = text('statusTimestampAfter', params.statusTimestampAfter);
  if (params.status < TaskState.TASK_STATE_UNSPECIFIED)
    throw new RequestMalformedError('status is not a task state');
  if (after !== '' && Number.isNaN(Date.parse(after))) {
    throw new RequestMalformedError('statusTimestampAfter must be a timestamp');
  }
  return {
    tenant: principal.tenant,
    peer: principal.agent,
    ...(contextId === '' ? {} : { contextId }),
    ...(params.status === TaskState.TASK_STATE_UNSPECIFIED ? {} : { state: taskStateToJSON(params.status) }),
    ...(after === '' ? {} : { since: toUtc(new Date(after)) }),
    ...(token === '' ? {} : { after: fromToken(token) }),
    // One more than the page, to know whether another page follows.
    limit: pageSize + 1,
  };
}

/** Newest status first, by cursor; artifacts only where they are asked for. */
export async function listTasks(
  store: LedgerTaskStore,
  params: ListTasksRequest,
  principal: Principal,
): Promise<ListTasksResponse> {
  const pageSize = wholeNumber('pageSize', params.pageSize, 1) ?? DEFAULT_PAGE_SIZE;
  if (pageSize > MAX_PAGE_SIZE) throw new RequestMalformedError(`pageSize must be at most ${MAX_PAGE_SIZE}`);
  const historyLength = wholeNumber('historyLength', params.historyLength, 0);
  const found = await store.list(filterOf(params, principal, pageSize));
  const page = found.tasks.slice(0, pageSize);
  const last = found.tasks.length > pageSize ? page.at(-1)?.row : undefined;
  return {
    tasks: page.map(({ task }) => {
      const shown = withHistoryLength(task, historyLength);
      return params.includeArtifacts ? shown : { ...shown, artifacts: [] };
    }),
    nextPageToken: last === undefined ? '' : toToken(last),
    pageSize,
    totalSize: found.total,
  };
}
