import { HoldfastError } from '../../core/index.js';

/** `unsafe`: what was committed can be lost, or is damaged. `warn`: somebody should look. `info`: good to know. */
export type Severity = 'unsafe' | 'warn' | 'info';

/** One thing that was found out about a database; `code` is stable. */
export interface Finding {
  readonly severity: Severity;
  readonly code: string;
  readonly message: string;
}

/** What a database and its settings are, as far as they decide whether a commit stays. */
export interface Inspection {
  /** One line for a person. */
  readonly summary: string;
  readonly findings: readonly Finding[];
}

export const isUnsafe = ({ severity }: Finding): boolean => severity === 'unsafe';

/** @throws ledger_unsafe naming each finding that is unsafe */
export function assertSafe({ findings }: Inspection): void {
  const unsafe = findings.filter(isUnsafe);
  if (unsafe.length === 0) return;
  const listed = unsafe.map(({ code, message }) => `${message} (${code})`).join(' ');
  throw new HoldfastError('ledger_unsafe', `\`durability: strict\` refuses this database. ${listed}`, {
    data: { findings: unsafe.map(({ code }) => code).join(',') },
  });
}
