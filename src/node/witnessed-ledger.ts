import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, type Logger, silentLogger } from '../core/index.js';
import {
  type Inspection,
  isPostgresUrl,
  type LedgerOptions,
  openCheckedLedger,
  openLedger,
  openWitnessFiles,
  redactUrl,
  type SeenLedger,
} from '../storage/index.js';
import { readConfig } from './config.js';
import type { Config } from './config-schema.js';
import { type LedgerPlace, ledgerPlace } from './ledger-place.js';
import {
  assertNotGone,
  assertNotOlder,
  openWitness,
  type Server,
  type Witness,
  type WitnessReport,
} from './witness.js';

/** What the agent has seen committed, in its own folder. */
const WITNESS_DIR = 'witness';

interface Opening {
  readonly dir: string;
  readonly place: LedgerPlace;
  readonly durability: Config['durability'];
  /** Instead of the ledger's own. */
  readonly clock: Clock | undefined;
  readonly logger: Logger;
  readonly accepting?: string;
}

/** The ledger of the agent in `dir`, compared with what it has seen of it. @throws as `openHoldfast` */
export async function openWitnessedLedger(
  opening: Opening,
): Promise<Witness & { readonly inspection: Inspection }> {
  const { dir, place, durability, clock, logger } = opening;
  const { target } = place;
  let server: Server | null = null;
  let witness: Witness | null = null;
  const files = openWitnessFiles(join(dir, WITNESS_DIR), {
    onLarge: () => {
      witness
        ?.check({ rewrite: true })
        .catch((err) => logger.error({ err }, 'the witness was not rewritten'));
    },
  });
  assertNotGone(files, isPostgresUrl(target) || existsSync(target), redactUrl(target));
  const options: LedgerOptions = {
    ...place.options,
    ...(clock === undefined ? {} : { clock }),
    sqlite: { onWarning: (fields, message) => logger.warn(fields, message) },
  };

  async function onTimeline(found: Server): Promise<void> {
    assertNotOlder(files, found);
    server = found;
    if (witness === null) return;
    // Its own connections: those of the ledger wait for what is found out here.
    const other = await openLedger(target, options);
    try {
      await witness.checkServer(found, other);
    } finally {
      await other.close();
    }
  }

  const { ledger, inspection } = await openCheckedLedger(target, durability, {
    ...options,
    postgres: { ...options.postgres, onTimeline },
  });
  try {
    witness = await openWitness({ files, ledger, server, ...opening });
    return { ...witness, inspection };
  } catch (error) {
    await ledger.close();
    throw error;
  }
}

/**
 * Takes the ledger of the configuration, or the one named instead, under its present incarnation for the one this agent works with;
 * what it lacks is quarantined.
 * @throws ledger_changed where it has another incarnation than the one given
 */
export async function acceptLedger(dir: string, incarnation: string, named?: string): Promise<WitnessReport> {
  const config = readConfig(dir);
  const { ledger, check } = await openWitnessedLedger({
    dir,
    place: ledgerPlace(config, dir, named),
    durability: config.durability,
    clock: undefined,
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
  const files = openWitnessFiles(join(dir, WITNESS_DIR));
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
