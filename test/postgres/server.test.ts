import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from './database.js';
import { type PostgresServer, startPostgres } from './server.js';

describe('the PostgreSQL of the tests', () => {
  let server: PostgresServer;
  const standbys: PostgresServer[] = [];
  beforeAll(async () => {
    server = await startPostgres();
    await server.query('CREATE TABLE kept (n int)');
  });
  afterAll(async () => {
    for (const standby of standbys) await standby.remove();
    await server.remove();
    expect(existsSync(server.dataDir)).toBe(false);
  });

  const rows = async (of: PostgresServer) =>
    (await of.query('SELECT n FROM kept ORDER BY n')).map(({ n }) => n);
  const setting = async (name: string) => (await server.query(`SHOW ${name}`))[0]?.[name];

  it('keeps what it says it keeps, with checksums, and listens on the loopback alone', async () => {
    expect(await setting('fsync')).toBe('on');
    expect(await setting('data_checksums')).toBe('on');
    expect(await setting('listen_addresses')).toBe('127.0.0.1');
  });

  it('refuses who does not know the password', async () => {
    const url = new URL(server.url());
    url.password = 'guess';
    const { Client } = (await import('pg')).default;
    await expect(new Client({ connectionString: url.href }).connect()).rejects.toThrow(/password/);
  });

  it.each(['fast', 'immediate'] as const)('stops %s and starts with what was committed', async (mode) => {
    await server.query('INSERT INTO kept SELECT count(*) FROM kept');
    const before = await rows(server);
    await server.stop(mode);
    await expect(server.query('SELECT 1')).rejects.toThrow(/ECONNREFUSED/);
    await server.start();
    expect(await rows(server)).toEqual(before);
  });

  it('is killed and recovers', async () => {
    const before = await rows(server);
    await server.kill();
    await server.start();
    expect(await rows(server)).toEqual(before);
    expect(server.log()).toContain('was not properly shut down');
  });

  it('has settings of the test and databases of their own', async () => {
    const other = await startPostgres({ settings: { fsync: 'off' } });
    try {
      expect(await other.query('SHOW fsync')).toEqual([{ fsync: 'off' }]);
      expect(await other.createDatabase('mine')).toBe(other.url('mine'));
    } finally {
      await other.remove();
    }
  });

  it('has a standby that follows by itself, and is promoted', async () => {
    const standby = await server.standby();
    standbys.push(standby);
    expect(await standby.query('SELECT pg_is_in_recovery() AS follows')).toEqual([{ follows: true }]);
    await expect(standby.query('INSERT INTO kept VALUES (0)')).rejects.toThrow(/read-only/);
    await standby.promote();
    await standby.query('INSERT INTO kept VALUES (1000)');
    expect(await rows(standby)).toContain(1000);
  });

  it('has a standby that commits wait for', async () => {
    const standby = await server.standby({ name: 'witness', synchronous: true });
    standbys.push(standby);
    await server.query('INSERT INTO kept VALUES (2000)');
    await standby.stop();
    const committed = server.query('INSERT INTO kept VALUES (2001)');
    await expect
      .poll(() => server.query("SELECT query FROM pg_stat_activity WHERE wait_event = 'SyncRep'"), {
        timeout: 10_000,
      })
      .toEqual([{ query: 'INSERT INTO kept VALUES (2001)' }]);
    await standby.start();
    await committed;
    expect(await rows(standby)).toContain(2001);
  });

  it('is shared by all test files, each with databases of its own', async () => {
    const [one, other] = [await createTestDatabase(), await createTestDatabase()];
    await one.query('CREATE TABLE mine (n int)');
    await expect(other.query('SELECT * FROM mine')).rejects.toThrow(/does not exist/);
    await one.drop();
    await other.drop();
    await expect(one.query('SELECT 1')).rejects.toThrow(/does not exist/);
  });
});
