import type { CaseRef, ErrorDetails, JsonObject } from '../core/index.js';
import type { CaseFile } from '../envelope/index.js';
import type { EvidenceReference } from '../evidence/index.js';
import type { EscalateInput, HandOffInput, HandOffResult, StatusPointer } from '../handoff/index.js';
import type { CaseRow, EffectRow, NoteRow } from '../ledger/index.js';

/** How the orchestrator drives the agents' processes: typed requests over the channel that `fork` gives. */

export interface AgentSetup {
  readonly dir: string;
  readonly role: 'triage' | 'billing' | 'billing2' | 'outsider';
  readonly systemsUrl: string;
  /** Billing does what it reads in the evidence, as an agent that trusts text would. */
  readonly gullible: boolean;
  /**
   * `host:port` that may really be dialled. Set where hostile addresses are tried: every other dial is noted and refused
   * inside the process, so that none can leave it.
   */
  readonly dialOnly: readonly string[] | null;
}

/** What triage has put together for a handover. */
export interface Prepared {
  readonly caseFile: CaseFile;
  readonly artifactId: string;
}

/** An A2A request as it is sent by somebody who does not use our sender. */
export interface RawSend {
  readonly to: string;
  readonly message: JsonObject;
  /** Whom the token is for; the addressee where absent. */
  readonly audience?: string;
}

interface Commands {
  start: [input: AgentSetup, output: { port: number }];
  openCase: [input: { caseId: string; owner?: string }, output: CaseRow];
  /** Reads the business systems, and keeps the redacted transcript as evidence. */
  prepare: [input: Record<string, never>, output: Prepared];
  reference: [input: { artifactId: string; to: string; expiresAt: string }, output: EvidenceReference];
  handOff: [input: HandOffInput, output: HandOffResult];
  /** A job that still believes that the case is at this epoch: a note in the ledger, then one in the case system. */
  retryNote: [input: { ref: CaseRef; epoch: number }, output: NoteRow];
  /** A job that refunds what the customer claims by itself, without asking who owns the case. */
  hastyRefund: [input: { ref: CaseRef; epoch: number }, output: EffectRow];
  /** Gives the case to a person, after this attempt. */
  escalate: [input: EscalateInput, output: CaseRow];
  statusPointer: [input: { ref: CaseRef }, output: StatusPointer];
  send: [input: RawSend, output: { status: number; body: JsonObject }];
  /** Addresses that were refused under `dialOnly`. */
  refusedDials: [input: Record<string, never>, output: string[]];
}

export type CommandName = keyof Commands;
export type CommandInput<N extends CommandName> = Commands[N][0];
export type CommandOutput<N extends CommandName> = Commands[N][1];

export interface Request {
  readonly id: number;
  readonly name: CommandName;
  readonly input: unknown;
}

export interface Failure extends Omit<ErrorDetails, 'cause'> {
  /** `null` where it was no error of ours. */
  readonly code: string | null;
  readonly message: string;
}

export type Reply =
  | { readonly id: number; readonly ok: true; readonly output: unknown }
  | { readonly id: number; readonly ok: false; readonly error: Failure };
