/** pg-boss as a durable queue in front of one transaction, tuned: batches, and a worker that is woken instead of polling. */
import pg from 'pg';
import PgBoss from 'pg-boss';
import { ACCEPT, serveJson, TABLES, valuesOf } from './reply.mjs';

const [url] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 16 });
await pool.query(TABLES);
const boss = new PgBoss({ connectionString: url, max: 16 });
boss.on('error', (error) => process.stderr.write(`${error}\n`));
await boss.start();
await boss.createQueue('handover');
const waiting = new Map();
const decide = async (jobs) => {
  await Promise.all(
    jobs.map(async ({ data }) => {
      const { key, answer, values } = valuesOf(data);
      await pool.query({ name: 'accept', text: ACCEPT, values });
      waiting.get(key)?.(JSON.parse(answer));
      waiting.delete(key);
    }),
  );
};
const worker = await boss.work('handover', { batchSize: 64, pollingIntervalSeconds: 0.5 }, decide);
serveJson(async (offer) => {
  const { key } = valuesOf(offer);
  const answered = new Promise((resolve) => waiting.set(key, resolve));
  await boss.send('handover', offer, { singletonKey: key });
  boss.notifyWorker(worker);
  return answered;
});
