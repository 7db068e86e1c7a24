import Database from 'better-sqlite3';

// This agent's own access: its own user, its own rights.
const desk = new Database(process.env.DESK_DB, { readonly: true });
const find = desk.prepare('SELECT payment, amount, currency FROM refunds WHERE case_id = ?');

export default ({ caseId }) => {
  const row = find.get(caseId);
  if (row === undefined) return null; // records_disagree
  const fact = (key, value) => ({ key, value, source: 'desk', verified: true });
  return {
    facts: [fact('payment', row.payment), fact('disputed', { amount: row.amount, currency: row.currency })],
  };
};
