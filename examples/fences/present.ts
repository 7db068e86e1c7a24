import type { Client } from 'pg';
import { isHoldfastError, present } from '../../src/index.js';

/** Bills a case as its owner; false where another agent owns it by now. */
export async function bill(client: Client, caseId: string, epoch: number): Promise<boolean> {
  const ref = { tenant: 'default', root: 'http://127.0.0.1:4100', caseId };
  await client.query('BEGIN');
  try {
    await present(client, { ref, epoch, writer: 'http://127.0.0.1:4100' });
    await client.query("INSERT INTO invoices (number, case_id, amount) VALUES ('INV-2', $1, 49)", [caseId]);
    await client.query('COMMIT');
    return true;
  } catch (error) {
    await client.query('ROLLBACK');
    if (isHoldfastError(error) && error.code === 'epoch_stale') return false; // data: presented, current
    throw error;
  }
}
