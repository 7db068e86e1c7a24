import { kindsOf } from './config.js';
import type { Config } from './config-schema.js';
import { loadContracts, loadHandlers } from './contracts.js';
import { checkThinKinds, loadReaders } from './readers.js';
import { ContractBook } from './received.js';

/** What a valid configuration leads to outside its own file. */
export interface VerifiedConfig {
  readonly contracts: readonly string[];
  /** What does not keep the agent from starting, and is probably not meant. */
  readonly warnings: readonly string[];
}

/**
 * Loads what the configuration names as a start would, without running any of it.
 * @throws contract_missing, contract_invalid, config_invalid
 */
export async function verifyConfig(dir: string, config: Config): Promise<VerifiedConfig> {
  const known = await loadContracts(dir, config.contracts);
  const book = new ContractBook(known, config.receives);
  checkThinKinds(kindsOf(config), book);
  await loadReaders(dir, config);
  if (config.handlers !== undefined) await loadHandlers(dir, config.handlers);
  // Handlers may bring contracts of their own, and all agents on a ledger share its kinds: neither is surely wrong.
  const named = [
    ...config.peers.flatMap(({ url, contracts }) =>
      contracts.map((id) => ({ id, where: `The peer ${url} is allowed` })),
    ),
    ...Object.entries(config.kinds).flatMap(([kind, { contracts }]) =>
      contracts.map((id) => ({ id, where: `The kind ${kind} names` })),
    ),
  ];
  const warnings = named
    .filter(({ id }) => !known.has(id))
    .map(({ id, where }) => `${where} ${id}, which this agent does not know: ${book.explainMissing(id)}`);
  return { contracts: [...known.keys()], warnings };
}
