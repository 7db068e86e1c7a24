import type { Contract, ContractDefinition } from './model.js';

/** @throws contract_invalid naming every problem found */
export function defineContract(definition: ContractDefinition): Contract {
  return { ...definition, id: `${definition.name}/${definition.version}` };
}
