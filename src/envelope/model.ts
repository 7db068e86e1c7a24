import type { JsonObject, JsonValue, Money } from '../core/index.js';
import type { EvidenceReference } from '../evidence/index.js';

/** One thing known about the case, who says so, and whether it was verified or is only claimed. */
export interface Fact {
  readonly key: string;
  readonly value: JsonValue;
  readonly source: string;
  readonly verified: boolean;
  readonly observed_at?: string;
}

/** What bounds the next owner, as it was agreed. */
export interface EnvelopeConstraints {
  readonly deadline?: string;
  /** Operation -> most that it may add up to. */
  readonly caps: Readonly<Record<string, Money>>;
  /** Operations nobody may start. */
  readonly prohibitions: readonly string[];
}

export interface ArtifactPointer {
  readonly id: string;
  readonly version: number;
  readonly digest: string;
}

export interface EnvelopeEffect {
  readonly key: string;
  readonly status: 'started' | 'done' | 'failed' | 'unknown';
  readonly operation: string;
  readonly amount?: Money;
}

export interface EnvelopeChain {
  /** Agents the case has passed through, oldest first. */
  readonly hops: readonly string[];
  readonly tasks_left: number;
  readonly spend_left?: Money;
}

/** Generated from structured fields and labelled so; the facts count, not this text. */
export interface EnvelopeSummary {
  readonly text: string;
  readonly generated_from: readonly string[];
}

/** The document that crosses: every field of version 2, and no other. */
export interface HandoffEnvelope {
  /**
   * No field of the document: says that it had those up to `skill`, `accept_by`, `chain` and `trace` only. The others are empty here,
   * and say nothing about the case.
   */
  readonly thin?: true;
  readonly version: number;
  readonly root: string;
  readonly incarnation: string;
  readonly case_id: string;
  readonly kind: string;
  readonly handoff_id: string;
  readonly attempt: number;
  readonly from_agent: string;
  readonly to_agent: string;
  /** The epoch being handed over; an acceptance makes it one more. */
  readonly epoch: number;
  /** `name/version` */
  readonly contract: string;
  readonly skill: string;
  readonly goal: string;
  readonly done: readonly string[];
  readonly remaining: readonly string[];
  readonly facts: readonly Fact[];
  readonly open_questions: readonly string[];
  readonly constraints: EnvelopeConstraints;
  readonly required_output?: string;
  readonly artifact?: ArtifactPointer;
  readonly source_task_id?: string;
  readonly summary: EnvelopeSummary;
  readonly references: readonly EvidenceReference[];
  readonly effects: readonly EnvelopeEffect[];
  readonly accept_by: string;
  readonly chain: EnvelopeChain;
  /** Receipts (compact JWS) that prove the chain from the root. */
  readonly provenance: readonly string[];
  readonly trace: { readonly traceparent: string };
}

/** One wire version of the envelope. Support for a version ends by leaving the registry. */
export interface EnvelopeCodec {
  readonly version: number;
  /** @throws schema_invalid, fact_unsourced, evidence_hash_missing, evidence_inline */
  parse(value: JsonValue): HandoffEnvelope;
  jsonSchema(): JsonObject;
}
