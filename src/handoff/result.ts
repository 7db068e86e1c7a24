import { type Contract, checkOutput } from '../contract/index.js';
import { HoldfastError } from '../core/index.js';

/**
 * What came of a work item, as the JSON that is stored. Work that is done has the output its contract promises; a failure may say
 * anything. The contract judges what will be read back, and what it makes of it is not kept.
 * @throws output_invalid naming the fields, usage where it cannot be written as JSON
 */
export async function storedResult(
  state: 'done' | 'failed',
  result: unknown,
  contract: Contract | null,
): Promise<string | null> {
  const json = serialize(result);
  if (state === 'done' && contract) await checkOutput(contract, json === null ? undefined : JSON.parse(json));
  return json;
}

function serialize(result: unknown): string | null {
  try {
    return JSON.stringify(result) ?? null;
  } catch (cause) {
    throw new HoldfastError('usage', 'The result of a work item must be a JSON value.', { cause });
  }
}
