import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Clock, type Logger, silentLogger, systemClock } from '../core/index.js';
import { openSqliteLedger, openWitnessFiles, type SeenLedger, type WitnessFiles } from '../storage/index.js';
import { readConfig } from './config.js';
import type { Config } from './config-schema.js';
import { assertNotGone, openWitness, type Witness, type WitnessReport } from './witness.js';

/** What the agent has seen committed, in its own folder. */
const WITNESS_DIR = 'witness';

interface Opening {
  readonly dir: string;
  readonly config: Config;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly accepting?: string;
}

/** The ledger of the configuration, compared with what this agent has seen of it. @throws as `openHoldfast` */
export async function openWitnessedLedger(opening: Opening): Promise<Witness> {
  const { dir, config, clock, logger } = opening;
  let server: Server | null = null;
  let witness: Witness | null = null;
  const files = openWitnessFiles(join(dir, WITNESS_DIR), {
    onLarge: () => {
      witness?.check({ rewrite: true }).catch((err) => logger.error({ err }, 'the witness was not rewritten'));
    },
  });
  const file = resolve(dir, config.ledger);
  assertNotGone(files, existsSync(file), file);
  const ledger = await openSqliteLedger({ file, clock });
  try {
    witness = await openWitness({ files, ledger, logger, server, ...opening });
    return witness;
  } catch (error) {
    await ledger.close();
    throw error;
  }
}

/**
 * Takes the ledger under its present incarnation for the one this agent works with; what it lacks is quarantined.
 * @throws ledger_changed where it has another incarnation than the one named
 */
export async function acceptLedger(dir: string, incarnation: string): Promise<WitnessReport> {
  const { ledger, check } = await openWitnessedLedger({
    dir,
    config: readConfig(dir),
    clock: systemClock,
    logger: silentLogger,
    accepting: incarnation,
  });
  try {
    return await check({ rewrite: true });
  } finally {
    await ledger.close();
  }
}

/** What stands in the witness of the agent in `dir`. @throws config_invalid */
export async function readWitness(
  dir: string,
): Promise<{ readonly dir: string; readonly ledger: SeenLedger | null; readonly cases: number }> {
  const files: WitnessFiles = openWitnessFiles(join(dir, WITNESS_DIR));
  let cases = 0;
  await files.visit(
    async (batch) => {
      cases += batch.length;
      return batch;
    },
    { rewrite: false },
  );
  return { dir: files.dir, ledger: files.ledger(), cases };
}
