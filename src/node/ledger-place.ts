import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { HoldfastError } from '../core/index.js';
import { type LedgerOptions, type LedgerTarget, resolveTarget, targetProblem } from '../storage/index.js';
import { CONFIG_FILE, readConfig } from './config.js';
import type { Config } from './config-schema.js';

/** Where a ledger is, and how it is opened. */
export interface LedgerPlace {
  readonly target: LedgerTarget;
  readonly options: LedgerOptions;
}

/** The ledger of a configuration whose folder is `dir`, or the one named instead. @throws usage where that is no name of one */
export function ledgerPlace(config: Config, dir: string, named?: string): LedgerPlace {
  return {
    target: named === undefined ? resolveTarget(dir, config.ledger) : targetOf(named),
    options: optionsOf(config),
  };
}

/** The same for who keeps the database and may have no agent: a ledger that is named needs no configuration. @throws usage, config_invalid */
export function namedPlace(dir: string, named?: string): LedgerPlace {
  if (named !== undefined && !existsSync(join(dir, CONFIG_FILE)))
    return { target: targetOf(named), options: {} };
  return ledgerPlace(readConfig(dir), dir, named);
}

/** A path that somebody typed is meant from the folder where they are. */
function targetOf(named: string): LedgerTarget {
  const problem = targetProblem(named);
  if (problem !== null) throw new HoldfastError('usage', `The ledger ${problem}.`);
  return resolveTarget(resolve('.'), named);
}

function optionsOf({ postgres }: Config): LedgerOptions {
  return {
    postgres: {
      connections: postgres.connections,
      connectMs: postgres.connect_timeout,
      statementMs: postgres.statement_timeout,
      lockMs: postgres.lock_timeout,
      replicationMs: postgres.standby_wait,
    },
  };
}
