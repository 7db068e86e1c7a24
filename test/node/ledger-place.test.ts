import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Logger } from '../../src/core/index.js';
import { openHoldfast } from '../../src/node/index.js';
import { freePort, temporaryFolder } from '../cli/support.js';
import { createTestDatabase, type TestDatabase } from '../postgres/database.js';

let folder: ReturnType<typeof temporaryFolder>;
let database: TestDatabase;
let url: string;

beforeEach(async () => {
  folder = temporaryFolder();
  database = await createTestDatabase();
  url = `http://127.0.0.1:${await freePort()}`;
});
afterEach(async () => {
  folder.remove();
  await database.drop();
});

/** What was logged, as level and text. */
function recorder(): { logger: Logger; lines: { level: string; fields: object; message: string }[] } {
  const lines: { level: string; fields: object; message: string }[] = [];
  const record = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields, message });
  return { lines, logger: { info: record('info'), warn: record('warn'), error: record('error') } };
}

const dir = () => join(folder.path, 'agent');
const config = (more: object = {}) => ({ agent: 'triage', url, listen: { port: 0 }, ...more });

describe('the ledger of an agent', () => {
  it('is the one named when it is opened, or else the configured one', async () => {
    const named = await openHoldfast({ dir: dir(), config: config(), ledger: join(folder.path, 'named.db') });
    await named.close();
    expect(existsSync(join(folder.path, 'named.db'))).toBe(true);
    expect(existsSync(join(dir(), 'ledger.db'))).toBe(false);

    const configured = await openHoldfast({ dir: dir(), config: config({ ledger: database.url }) });
    const incarnation = await configured.ledger.incarnation();
    await configured.close();
    const again = await openHoldfast({ dir: dir(), config: config(), ledger: database.url });
    expect(await again.ledger.incarnation()).toBe(incarnation);
    await again.close();
  });

  it('is described at start in one line, and loudly where its database can lose commits', async () => {
    const name = new URL(database.url).pathname.slice(1);
    await database.query(`ALTER DATABASE ${name} SET synchronous_commit = off`);
    const { logger, lines } = recorder();
    const holdfast = await openHoldfast({ dir: dir(), config: config({ ledger: database.url }), logger });
    expect(lines).toEqual([]);
    await holdfast.start();
    await holdfast.close();
    expect(lines[0]).toEqual({
      level: 'info',
      message: 'ledger opened',
      fields: {
        ledger: expect.stringMatching(/^postgres:\/\/postgres:\*\*\*@127/),
        database: expect.stringMatching(/^PostgreSQL .*synchronous_commit off.*standbys: none$/),
      },
    });
    expect(lines[1]).toEqual({
      level: 'warn',
      message: 'the database of the ledger can lose what it has committed',
      fields: { finding: 'synchronous_commit_off', what: expect.any(String) },
    });
    expect(JSON.stringify(lines)).not.toContain(new URL(database.url).password);

    const strict = openHoldfast({
      dir: dir(),
      config: config({ ledger: database.url, durability: 'strict' }),
    });
    await expect(strict).rejects.toMatchObject({
      code: 'ledger_unsafe',
      data: { findings: 'synchronous_commit_off' },
    });
  });
});
