import { sql as ledger } from './001-ledger.js';
import { sql as commit } from './002-commit.js';
import { sql as fences } from './003-fences.js';
import { sql as separate } from './004-separate.js';
import { sql as push } from './005-push.js';
import { sql as recovery } from './006-recovery.js';
import { sql as frozen } from './007-frozen.js';
import { sql as incarnation } from './008-incarnation.js';
import { sql as pending } from './009-pending.js';
import { sql as leaps } from './010-leaps.js';
import { sql as candidates } from './012-candidates.js';

export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

/** In order. One that has been released never changes: what it made is out there. */
export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'ledger', sql: ledger },
  { version: 2, name: 'commit', sql: commit },
  { version: 3, name: 'fences', sql: fences },
  { version: 4, name: 'separate', sql: separate },
  { version: 5, name: 'push', sql: push },
  { version: 6, name: 'recovery', sql: recovery },
  { version: 7, name: 'frozen', sql: frozen },
  { version: 8, name: 'incarnation', sql: incarnation },
  { version: 9, name: 'pending', sql: pending },
  { version: 10, name: 'leaps', sql: leaps },
  { version: 12, name: 'candidates', sql: candidates },
];

/** The version that this program brings a database to; where a database needed nothing, a number is left out. */
export const KNOWN_VERSION = MIGRATIONS.at(-1)?.version ?? 0;
