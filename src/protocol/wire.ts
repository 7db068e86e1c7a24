import type { JsonObject, JsonValue } from '../core/index.js';

/** A2A 1.0 as ProtoJSON on the wire (camelCase, enums by name); only what we read or write. */

export interface Part {
  text?: string;
  raw?: string;
  url?: string;
  data?: JsonValue;
  metadata?: JsonObject;
  filename?: string;
  mediaType?: string;
}

export interface Message {
  messageId: string;
  role: 'ROLE_USER' | 'ROLE_AGENT';
  parts: Part[];
  contextId?: string;
  taskId?: string;
  metadata?: JsonObject;
  extensions?: string[];
  referenceTaskIds?: string[];
}

export type TaskState =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'
  | 'TASK_STATE_INPUT_REQUIRED'
  | 'TASK_STATE_REJECTED'
  | 'TASK_STATE_AUTH_REQUIRED';

export const TERMINAL_TASK_STATES: readonly TaskState[] = [
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
];

export interface Artifact {
  artifactId: string;
  parts: Part[];
  name?: string;
  description?: string;
  metadata?: JsonObject;
}

export interface Task {
  id: string;
  contextId: string;
  status: { state: TaskState; timestamp: string; message?: Message };
  artifacts?: Artifact[];
  history?: Message[];
  metadata?: JsonObject;
}
