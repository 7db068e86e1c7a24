/** A late owner with better-sqlite3 and nothing else: inserts under its old token until the table refuses; says how often it could. `seen`
 * is a query of what each row keeps of the ledger at its moment. */
import Database from 'better-sqlite3';

const [file, token, seen = "SELECT owner FROM cases WHERE case_id = 'CASE-1'"] = process.argv.slice(2);
const db = new Database(file, { timeout: 5000 });
const insert = db.prepare(`INSERT INTO invoices (case_id, amount, seen, holdfast_token)
  VALUES (substr(:token, 1, instr(:token, ':') - 1), '1.00', (${seen}), :token)`);
let written = 0;
for (const until = Date.now() + 20_000; Date.now() < until; ) {
  try {
    insert.run({ token });
    written += 1;
    if (written === 1) process.stdout.write('writing\n');
  } catch (error) {
    process.stdout.write(`${JSON.stringify({ written, message: error.message })}\n`);
    break;
  }
}
