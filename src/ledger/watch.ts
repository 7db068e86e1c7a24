/** A task at a peer that this agent made and wants to hear of. A notification of it makes this agent read the task, and nothing else. */
export interface TaskWatch {
  readonly tenant: string;
  /** Random, and part of the URL to which the peer sends. */
  readonly watchId: string;
  /** URL of the agent that watches. */
  readonly agent: string;
  readonly peer: string;
  readonly taskId: string;
  /** SHA-256 of the one token that is good for this watch, lower-case hex. */
  readonly tokenHash: string;
  /** With which the peer signs, base64. */
  readonly secret: string;
  readonly createdAt: string;
  /** UTC; afterwards nothing is taken for it any more. */
  readonly until: string;
}

export type AddWatchCommand = Omit<TaskWatch, 'createdAt' | 'until'> & {
  /** How long it lasts, milliseconds. */
  readonly lastsMs: number;
};
