import { HoldfastError } from '../core/index.js';
import type { CaseReader } from '../handoff/index.js';
import type { KindDefinition } from '../ledger/index.js';
import type { Config } from './config-schema.js';
import { loadModule } from './contracts.js';
import type { ContractBook } from './received.js';

/** How this agent reads cases where a thin contract leaves that to it; by kind. */
export type CaseReaders = Map<string, CaseReader>;

/** @throws config_invalid where a module cannot be loaded, or exports no reader */
export async function loadReaders(dir: string, { kinds }: Config): Promise<CaseReaders> {
  const readers: CaseReaders = new Map();
  for (const [kind, { reader: path }] of Object.entries(kinds)) {
    if (path === undefined) continue;
    const reader = await loadModule(dir, path);
    if (typeof reader !== 'function')
      throw new HoldfastError('config_invalid', `The default export of ${path} is not a function.`);
    readers.set(kind, reader as CaseReader);
  }
  return readers;
}

/** @throws config_invalid where a kind of separate ledgers names a thin contract */
export function checkThinKinds(kinds: readonly KindDefinition[], contracts: ContractBook): void {
  for (const { kind, mode, contracts: ids } of kinds) {
    const thin = mode === 'separate' ? ids.find((id) => contracts.find(id)?.thin) : undefined;
    if (thin === undefined) continue;
    throw new HoldfastError(
      'config_invalid',
      `kinds.${kind}.contracts: ${thin} is a thin contract, and the kind has the mode separate. Its receiver would know nothing of the case.`,
    );
  }
}

/** @throws reader_missing where cases of a kind can come here under a thin contract, and nothing reads them */
export function checkReaders(
  kinds: readonly KindDefinition[],
  contracts: ContractBook,
  readers: CaseReaders,
): void {
  for (const { kind, contracts: ids } of kinds) {
    const thin = ids.find((id) => contracts.received(id)?.contract.thin);
    if (thin === undefined || readers.has(kind)) continue;
    throw new HoldfastError(
      'reader_missing',
      `Cases of the kind ${kind} come here under ${thin}, a thin contract, and nothing reads them. Give a reader: kinds.${kind}.reader, or onCase.`,
      { data: { kind, contract: thin } },
    );
  }
}
