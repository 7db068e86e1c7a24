import {
  type AcceptanceKey,
  type CaseRef,
  digestOf,
  type ErrorCode,
  HoldfastError,
  sha256Hex,
} from '../../core/index.js';
import type { AuditFact, CaseRow } from '../model.js';
import type { Ruling } from './ruling.js';

type Scalar = string | number | boolean | null;

const ID_LIKE = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,199}$/;

/** The audit holds ids and codes as they are; whatever could be prose or a signed URL only as its digest. */
export function loggableId(text: string): string {
  return ID_LIKE.test(text) ? text : `sha256:${sha256Hex(text)}`;
}

/** The same for machine-readable particulars. */
export function loggableData(data: Readonly<Record<string, Scalar>>): Record<string, Scalar> {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [
      loggableId(name),
      typeof value === 'string' ? loggableId(value) : value,
    ]),
  );
}

/** Half a surrogate pair, such as text cut in the middle leaves, is not the same any more once it was stored. */
export function storable(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}

export function attemptOf(key: AcceptanceKey): { handoffId: string; attempt: number } {
  return { handoffId: key.handoffId, attempt: key.attempt };
}

/** Epoch of a write that does not change it. */
export function atEpoch(epoch: number): { epochBefore: number; epochAfter: number } {
  return { epochBefore: epoch, epochAfter: epoch };
}

/** What bounds the owner, as a digest: a prohibition may be prose. */
export function boundsOf({ constraints, hops, tasksLeft }: CaseRow): string {
  return digestOf({ constraints, hops, tasksLeft });
}

export interface Refused {
  readonly write: string;
  readonly ref: CaseRef;
  readonly writer: string;
  readonly code: ErrorCode;
  readonly message?: string;
  readonly data?: Readonly<Record<string, Scalar>>;
}

/** The ruling on a write that is refused: its audit entry, then the error. */
export function refuse(refused: Refused): Ruling<never> {
  const data = refused.data ?? {};
  const fact: AuditFact = {
    type: 'write_refused',
    actor: refused.writer,
    rule: refused.code,
    data: { write: refused.write, ...loggableData(data) },
  };
  return {
    changes: [],
    audit: { ref: refused.ref, facts: [fact] },
    refusal: new HoldfastError(refused.code, refused.message, { data }),
  };
}
