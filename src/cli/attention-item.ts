import type { AttentionItem, AuditEntry } from '../ledger/index.js';
import type { printFields } from './print.js';

export type Of<What extends AttentionItem['what']> = Extract<AttentionItem, { readonly what: What }>;

export interface Explained {
  readonly fields: Parameters<typeof printFields>[0];
  /** Entries of the case's audit that tell of it. */
  readonly history: readonly AuditEntry[];
  /** What is safe to do, in order. */
  readonly safe: readonly string[];
  readonly commands: readonly string[];
}
