import pg from 'pg';

const [url, caseId, epoch, agent] = process.argv.slice(2);
const client = new pg.Client(url);
await client.connect();

await client.query('BEGIN');
try {
  await client.query('SELECT holdfast.present($1, $2, $3, $4, $5)', [
    'default',
    'http://127.0.0.1:4100',
    caseId,
    epoch,
    agent,
  ]);
  await client.query("INSERT INTO invoices (number, case_id, amount) VALUES ('INV-1', $1, 49)", [caseId]);
  await client.query("UPDATE invoices SET amount = 39 WHERE number = 'INV-1'");
  await client.query("DELETE FROM invoices WHERE number = 'INV-1'");
  await client.query('COMMIT');
  console.log('written');
} catch (error) {
  await client.query('ROLLBACK');
  console.log(error.code, error.message); // HF002 holdfast: case CASE-7001 has a newer epoch (presented …)
}
await client.end();
