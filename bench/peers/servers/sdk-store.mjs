/** The official SDK with its own database store: `sdk-store.mjs sqlite FILE` or `sdk-store.mjs postgres URL`. No fence, no deduplication. */
import { TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler } from '@a2a-js/sdk/server';
import { DatabaseTaskStore } from '@a2a-js/sdk/server/database';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import Database from 'better-sqlite3';
import express from 'express';
import { Kysely, PostgresDialect, SqliteDialect } from 'kysely';
import pg from 'pg';

const [engine, target] = process.argv.slice(2);

function dialect() {
  if (engine === 'postgres')
    return new PostgresDialect({ pool: new pg.Pool({ connectionString: target, max: 32 }) });
  const database = new Database(target);
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  return new SqliteDialect({ database });
}

const artifact = {
  artifactId: 'answer',
  name: 'Answer',
  description: '',
  parts: [
    {
      content: { $case: 'data', value: { accepted: true, receipt: 'r'.repeat(800) } },
      metadata: undefined,
      filename: '',
      mediaType: 'application/json',
    },
  ],
  metadata: undefined,
  extensions: [],
};

const executor = {
  async execute({ taskId: id, contextId, userMessage }, bus) {
    const timestamp = new Date().toISOString();
    const status = { state: TaskState.TASK_STATE_COMPLETED, message: undefined, timestamp };
    const history = [userMessage];
    bus.publish(
      AgentEvent.task({ id, contextId, status, artifacts: [artifact], history, metadata: undefined }),
    );
  },
  async cancelTask() {},
};

const card = {
  name: 'store',
  description: 'store',
  version: '1.0.0',
  supportedInterfaces: [{ url: 'http://127.0.0.1/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { extensions: [] },
  defaultInputModes: ['application/json'],
  defaultOutputModes: ['application/json'],
  skills: [],
};
const store = new DatabaseTaskStore(new Kysely({ dialect: dialect() }));
const requestHandler = new DefaultRequestHandler(card, store, executor);
const app = express();
app.use('/a2a', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
const server = app.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${server.address().port}/a2a\n`);
});
