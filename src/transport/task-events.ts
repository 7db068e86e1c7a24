import { randomUUID } from 'node:crypto';
import {
  type Artifact,
  type Message,
  Role,
  type StreamResponse,
  type Task,
  TaskState,
  type TaskStatus,
} from '@a2a-js/sdk';
import type { AgentExecutionEvent } from '@a2a-js/sdk/server';
import { toUtc } from '../core/index.js';

/** The message that an executor is working on, and the task it belongs to. */
export interface Turn {
  readonly taskId: string;
  readonly contextId: string;
  readonly message: Message;
}

export function agentText(taskId: string, contextId: string, text: string): Message {
  return {
    messageId: randomUUID(),
    role: Role.ROLE_AGENT,
    taskId,
    contextId,
    parts: [
      { content: { $case: 'text', value: text }, mediaType: 'text/plain', filename: '', metadata: undefined },
    ],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

export function statusEvent(
  turn: Omit<Turn, 'message'>,
  state: TaskState,
  text: string,
): AgentExecutionEvent {
  const { taskId, contextId } = turn;
  const status = { state, message: agentText(taskId, contextId, text), timestamp: toUtc(new Date()) };
  return { kind: 'statusUpdate', data: { taskId, contextId, status, metadata: undefined } };
}

/** A status that no executor announced, as those who listen are told of it. */
export function statusResponse({ id: taskId, contextId }: Task, status: TaskStatus): StreamResponse {
  return { payload: { $case: 'statusUpdate', value: { taskId, contextId, status, metadata: undefined } } };
}

/** Times are stored as UTC with milliseconds, because lists are ordered by them. */
function stamped(status: TaskStatus): TaskStatus {
  const given = status.timestamp === undefined ? Number.NaN : Date.parse(status.timestamp);
  return { ...structuredClone(status), timestamp: toUtc(new Date(Number.isNaN(given) ? Date.now() : given)) };
}

function isKnown(status: TaskStatus | undefined): status is TaskStatus {
  return status !== undefined && status.state > TaskState.TASK_STATE_UNSPECIFIED;
}

type Metadata = Task['metadata'];

function mergeMetadata(current: Metadata, incoming: Metadata): Metadata {
  return incoming === undefined ? current : { ...current, ...incoming };
}

/** Artifacts stay; one with an id that is there already takes its place. */
function mergeArtifacts(current: readonly Artifact[], incoming: readonly Artifact[]): Artifact[] {
  const merged = new Map(current.map((artifact) => [artifact.artifactId, artifact]));
  for (const artifact of incoming) merged.set(artifact.artifactId, artifact);
  return [...merged.values()];
}

function appendToArtifact(existing: Artifact, more: Artifact): Artifact {
  return {
    ...existing,
    name: more.name || existing.name,
    description: more.description || existing.description,
    parts: [...existing.parts, ...(more.parts ?? [])],
    metadata: mergeMetadata(existing.metadata, more.metadata),
  };
}

function withMessage(history: readonly Message[], message: Message | undefined): Message[] {
  const known = message === undefined || history.some((one) => one.messageId === message.messageId);
  return known ? [...history] : [...history, message];
}

function newTask(turn: Turn): Task {
  return {
    id: turn.taskId,
    contextId: turn.contextId,
    status: stamped({ state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined }),
    artifacts: [],
    history: [turn.message],
    metadata: undefined,
  };
}

/** The task after an event, or `null` where the event is about another task or makes no sense. Changes nothing it is given. */
export function applyEvent(current: Task | null, event: AgentExecutionEvent, turn: Turn): Task | null {
  const base = current ?? newTask(turn);
  switch (event.kind) {
    case 'task': {
      const given = structuredClone(event.data);
      if (given.id !== turn.taskId || !isKnown(given.status)) return null;
      const history = given.history?.length ? given.history : base.history;
      const asked = history.some((one) => one.messageId === turn.message.messageId);
      return {
        ...given,
        contextId: turn.contextId,
        status: stamped(given.status),
        artifacts: mergeArtifacts(base.artifacts, given.artifacts ?? []),
        history: asked ? history : [turn.message, ...history],
        metadata: mergeMetadata(base.metadata, given.metadata),
      };
    }
    case 'statusUpdate': {
      const { taskId, status, metadata } = event.data;
      if (taskId !== turn.taskId || !isKnown(status)) return null;
      return {
        ...base,
        status: stamped(status),
        history: withMessage(base.history, status.message),
        metadata: mergeMetadata(base.metadata, metadata),
      };
    }
    case 'artifactUpdate': {
      const { taskId, append } = event.data;
      const artifact = structuredClone(event.data.artifact);
      if (taskId !== turn.taskId || artifact === undefined) return null;
      const existing = base.artifacts.find((one) => one.artifactId === artifact.artifactId);
      const next = append && existing !== undefined ? appendToArtifact(existing, artifact) : artifact;
      return { ...base, artifacts: mergeArtifacts(base.artifacts, [next]) };
    }
    default:
      return null;
  }
}
