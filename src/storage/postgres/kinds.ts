import type { KindDefinition } from '../../ledger/index.js';
import type { Ask } from './keys.js';

const LIST = { name: 'kinds', text: 'SELECT definition FROM holdfast.kinds WHERE tenant = $1 ORDER BY kind' };

export const kindTable = (ask: Ask) => ({
  list: async (tenant: string): Promise<KindDefinition[]> =>
    (await ask<{ definition: string }>(LIST, [tenant])).map(({ definition }) => JSON.parse(definition)),
});
