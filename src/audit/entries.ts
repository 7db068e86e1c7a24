import { canonical, HoldfastError } from '../core/index.js';
import type { AuditEntry } from '../ledger/index.js';

/* What an entry says, read out of it. */

/** One attempt of one sender, within its case. */
export function attemptId(sender: string, handoffId: string, attempt: number): string {
  return canonical([sender, handoffId, attempt]);
}

/** Under the sender's name, also where it was not the sender who closed it. */
export function attempt(entry: AuditEntry): string {
  const sender = entry.data?.sender;
  const name = typeof sender === 'string' ? sender : entry.actor;
  return attemptId(name, needed(entry.handoffId, entry), needed(entry.attempt, entry));
}

export function digest(entry: AuditEntry): string {
  return needed(entry.digest, entry);
}

export function text(entry: AuditEntry, name: string): string {
  const value = entry.data?.[name];
  return needed(typeof value === 'string' ? value : null, entry);
}

export function whole(entry: AuditEntry, name: string): number {
  const value = entry.data?.[name];
  return needed(typeof value === 'number' ? value : null, entry);
}

export function strings(entry: AuditEntry, name: string): string[] {
  const value = entry.data?.[name];
  return needed(Array.isArray(value) ? value : null, entry).map(String);
}

/** @throws audit_broken where the entry does not carry it */
export function needed<T>(value: T | null | undefined, entry: AuditEntry): T {
  if (value === null || value === undefined) {
    throw new HoldfastError('audit_broken', undefined, { data: { seq: entry.seq, type: entry.type } });
  }
  return value;
}
