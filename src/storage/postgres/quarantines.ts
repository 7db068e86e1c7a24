import type { Quarantine } from '../../ledger/index.js';
import { type QuarantineColumns, toQuarantine } from '../rows/quarantines.js';
import type { Ask } from './keys.js';

const LIST = {
  name: 'quarantines',
  text: 'SELECT * FROM holdfast.quarantines WHERE tenant = $1 ORDER BY ord',
};

export const quarantineTable = (ask: Ask) => ({
  list: async (tenant: string): Promise<Quarantine[]> =>
    (await ask<QuarantineColumns>(LIST, [tenant])).map(toQuarantine),
});
