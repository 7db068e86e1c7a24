import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { BUILT_IN_CONTRACTS, type Contract } from '../contract/index.js';
import { HoldfastError } from '../core/index.js';
import type { Holdfast } from './holdfast.js';
import { nearestOf } from './nearest.js';

/**
 * The contracts that a configuration names: built in ones by id, others from modules.
 * @throws contract_missing, contract_invalid, config_invalid
 */
export async function loadContracts(dir: string, names: readonly string[]): Promise<Map<string, Contract>> {
  const contracts = new Map<string, Contract>();
  for (const name of names) {
    for (const contract of await loadContract(dir, name)) {
      if (contracts.has(contract.id)) {
        throw new HoldfastError('config_invalid', `The contract ${contract.id} is configured twice.`);
      }
      contracts.set(contract.id, contract);
    }
  }
  return contracts;
}

/** The default export of a user's module. @throws config_invalid when it cannot be loaded */
export async function loadModule(dir: string, path: string): Promise<unknown> {
  try {
    return ((await import(pathToFileURL(resolve(dir, path)).href)) as { default?: unknown }).default;
  } catch (cause) {
    // An error of ours, such as contract_invalid from defineContract, says more than we could.
    if (cause instanceof HoldfastError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new HoldfastError('config_invalid', `The module ${path} cannot be loaded: ${reason}`, { cause });
  }
}

/** What a module of handlers exports: it registers what the agent does. @throws config_invalid */
export async function loadHandlers(
  dir: string,
  path: string,
): Promise<(holdfast: Holdfast) => void | Promise<void>> {
  const register = await loadModule(dir, path);
  if (typeof register === 'function') return register as (holdfast: Holdfast) => void | Promise<void>;
  throw new HoldfastError('config_invalid', `The default export of ${path} is not a function.`);
}

async function loadContract(dir: string, name: string): Promise<readonly Contract[]> {
  if (!/^[./]/.test(name)) {
    const builtIn = BUILT_IN_CONTRACTS.find(({ id }) => id === name);
    if (builtIn) return [builtIn];
    const ids = BUILT_IN_CONTRACTS.map(({ id }) => id);
    const known = ids.join(', ');
    const nearest = nearestOf(ids, name);
    throw new HoldfastError(
      'contract_missing',
      `There is no built-in contract ${name} (there is ${known}).${nearest === null ? '' : ` Did you mean ${nearest}?`} The path of a module starts with ./ or /.`,
    );
  }
  const exported = await loadModule(dir, name);
  const contracts = Array.isArray(exported) ? exported : [exported];
  if (contracts.length === 0 || !contracts.every(isContract)) {
    throw new HoldfastError(
      'contract_missing',
      `The default export of ${name} is neither a contract made with defineContract nor a list of them.`,
    );
  }
  return contracts;
}

function isContract(value: unknown): value is Contract {
  if (typeof value !== 'object' || value === null) return false;
  const { id, name, version, facts } = value as Partial<Contract>;
  return id !== undefined && id === `${name}/${version}` && typeof facts === 'object';
}
