import { resolve } from 'node:path';

/** Where a ledger is: the path of an SQLite file, or the URL of a PostgreSQL database. */
export type LedgerTarget = string;

const SCHEME = /^[a-z][a-z0-9+.-]*:\/\//i;

export function isPostgresUrl(target: LedgerTarget): boolean {
  return /^postgres(ql)?:/i.test(target);
}

/** What keeps a text from naming a ledger, or `null`. */
export function targetProblem(target: string): string | null {
  if (!isPostgresUrl(target)) {
    if (target === '' || target.includes('\0') || SCHEME.test(target)) {
      return 'must be a file path, or the URL of a PostgreSQL database such as postgres://user@host/name';
    }
    return null;
  }
  const url = URL.canParse(target) ? new URL(target) : null;
  if (url === null || !SCHEME.test(target)) return 'must be a URL such as postgres://user@host/name';
  if (url.pathname.length < 2) return 'must name a database, such as postgres://user@host/name';
  return null;
}

/** A path is meant from the folder of what names it. */
export function resolveTarget(dir: string, target: string): LedgerTarget {
  return isPostgresUrl(target) ? target : resolve(dir, target);
}

/** The target as it may be shown: a URL without its password. */
export function redactUrl(target: LedgerTarget): string {
  if (!isPostgresUrl(target)) return target;
  if (!URL.canParse(target)) return 'postgres://…';
  const url = new URL(target);
  if (url.password !== '') url.password = '***';
  for (const name of [...url.searchParams.keys()]) {
    if (/password|secret|token/i.test(name)) url.searchParams.set(name, '***');
  }
  return url.href;
}
