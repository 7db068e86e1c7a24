import { createServer } from 'node:http';

/** Answers every POST with what `handle` makes of its JSON body, and says on stdout where it listens. */
export function serveJson(handle) {
  const server = createServer(async (request, response) => {
    try {
      let text = '';
      for await (const chunk of request) text += chunk;
      const body = JSON.stringify(await handle(JSON.parse(text)));
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      });
      response.end(body);
    } catch (error) {
      const said = String(error?.stack);
      response.writeHead(500, { 'content-length': Buffer.byteLength(said) }).end(said);
    }
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`http://127.0.0.1:${server.address().port}/handover\n`);
  });
}

/** The table that the peers without a state of their own keep ownership in. */
export const TABLES = `
  CREATE TABLE IF NOT EXISTS owned (case_id text PRIMARY KEY, owner text NOT NULL, epoch bigint NOT NULL);
  CREATE TABLE IF NOT EXISTS decided (key text PRIMARY KEY, digest text NOT NULL, answer text NOT NULL);
  CREATE TABLE IF NOT EXISTS released (key text PRIMARY KEY, intended boolean NOT NULL, receipt text)`;

/** One statement: the decision under its key, and the owner moved where it is still the sender at its epoch. */
export const ACCEPT = `
  WITH moved AS (
    INSERT INTO owned AS o (case_id, owner, epoch) VALUES ($1, $2, $3 + 1)
    ON CONFLICT (case_id) DO UPDATE SET owner = $2, epoch = o.epoch + 1 WHERE o.epoch = $3 RETURNING epoch
  )
  INSERT INTO decided (key, digest, answer) SELECT $4, $5, $6 FROM moved RETURNING answer`;

/** What `ACCEPT` wants to know of an offer. */
export function valuesOf({ case_id, to_agent, epoch, handoff_id, attempt, digest }) {
  const answer = JSON.stringify({ accepted: true, case_id, epoch: epoch + 1, receipt: 'r'.repeat(800) });
  return {
    key: `${handoff_id}:${attempt}`,
    answer,
    values: [case_id, to_agent, epoch, `${handoff_id}:${attempt}`, digest, answer],
  };
}
