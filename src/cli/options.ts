import { HoldfastError, isHoldfastError } from '../core/index.js';

/**
 * Runs what writes options into a configuration that was valid before: what is then wrong with it is wrong with an option.
 * @throws usage in place of config_invalid, where every field comes from an option
 */
export async function asOptions<T>(
  optionOf: Readonly<Record<string, string>>,
  write: () => Promise<T>,
): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== 'config_invalid') throw error;
    const problems = error.fields.map(({ path, problem }) => {
      const [name = ''] = path.replace(/^peers\[\d+\]\./, '').split('[');
      return optionOf[name] && `${optionOf[name]} ${problem.replace(/ \(line \d+\)$/, '')}`;
    });
    if (problems.length === 0 || problems.includes(undefined)) throw error;
    throw new HoldfastError('usage', `${problems.join('; ')}.`, { cause: error });
  }
}
