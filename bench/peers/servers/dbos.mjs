/** DBOS: one workflow per handover, its id the acceptance key. `accept` has one step; `whole` has intent, acceptance and release. */
import { DBOS } from '@dbos-inc/dbos-sdk';
import pg from 'pg';
import { ACCEPT, serveJson, TABLES, valuesOf } from './reply.mjs';

const [url] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 16 });
await pool.query(TABLES);
// Nothing is exported and nobody is called: no telemetry, no conductor.
DBOS.setConfig({
  name: 'handover',
  systemDatabaseUrl: url,
  systemDatabasePoolSize: 32,
  enableOTLP: false,
  tracingEnabled: false,
  logLevel: 'error',
});
const run = (name, text, values) => DBOS.runStep(() => pool.query({ name, text, values }), { name });
const acceptance = async ({ key, answer, values }) => {
  await run('accept', ACCEPT, values);
  return { key, answer };
};
const accept = DBOS.registerWorkflow(async (offer) => (await acceptance(offer)).answer, { name: 'accept' });
const whole = DBOS.registerWorkflow(
  async (offer) => {
    const { key } = offer;
    await run('intend', 'INSERT INTO released (key, intended) VALUES ($1, true)', [key]);
    const { answer } = await acceptance(offer);
    await run('release', 'UPDATE released SET receipt = $2 WHERE key = $1', [key, answer]);
    return answer;
  },
  { name: 'whole' },
);
await DBOS.launch();
serveJson(async (body) => {
  const offer = valuesOf(body);
  const handle = await DBOS.startWorkflow(body.whole ? whole : accept, { workflowID: offer.key })(offer);
  return JSON.parse(await handle.getResult());
});
