import Database from 'better-sqlite3';

const [file, caseId, epoch, agent] = process.argv.slice(2);
const db = new Database(file, { timeout: 5000 });
const token = `${caseId}:${epoch}:${agent}`;

db.exec('BEGIN IMMEDIATE');
try {
  db.prepare('INSERT INTO invoices (number, case_id, amount, holdfast_token) VALUES (?, ?, ?, ?)').run(
    'INV-1',
    caseId,
    '49.00',
    token,
  );
  db.prepare('UPDATE invoices SET amount = ?, holdfast_token = ? WHERE number = ?').run(
    '39.00',
    token,
    'INV-1',
  );
  // A DELETE cannot say whose it is, so that the row is marked first.
  db.prepare('UPDATE invoices SET holdfast_token = ? WHERE number = ?').run(`delete ${token}`, 'INV-1');
  db.prepare('DELETE FROM invoices WHERE number = ?').run('INV-1');
  db.exec('COMMIT');
  console.log('written');
} catch (error) {
  db.exec('ROLLBACK');
  console.log(error.message); // holdfast: HF002 INSERT on invoices: the case has a newer epoch
}
db.close();
