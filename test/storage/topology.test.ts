import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { examineLedger, ledgerStatus, migrateLedger, openCheckedLedger } from '../../src/storage/index.js';
import { type PostgresServer, startPostgres } from '../postgres/server.js';

/** One server of its own: its settings are what is tested. */
let server: PostgresServer;
let url: string;
const standbys: PostgresServer[] = [];

beforeAll(async () => {
  server = await startPostgres();
  url = await server.createDatabase('ledger');
  await migrateLedger(url);
});
afterAll(async () => {
  for (const standby of standbys) await standby.remove();
  await server.remove();
});

async function findings(target = url) {
  const { inspection } = await ledgerStatus(target);
  return inspection.findings.map(({ severity, code }) => `${severity} ${code}`);
}

/** Sets one setting of the whole server while `work` runs. */
async function withSetting(sql: string, back: string, work: () => Promise<void>): Promise<void> {
  const apply = async (statement: string) => {
    await server.query(statement);
    await server.query('SELECT pg_reload_conf()');
    // Backends take a reloaded file between two statements; new connections have it at once.
    await server.query('SELECT pg_sleep(0.2)');
  };
  await apply(sql);
  try {
    await work();
  } finally {
    await apply(back);
  }
}

describe('what is said of a PostgreSQL server', () => {
  it('is nothing where a commit stays', async () => {
    expect(await findings()).toEqual([]);
    const { inspection } = await ledgerStatus(url);
    expect(inspection.summary).toMatch(
      /^PostgreSQL 18\.\d+: fsync on, full_page_writes on, synchronous_commit on, checksums on, standbys: none$/,
    );
    const { ledger } = await openCheckedLedger(url, 'strict');
    await ledger.close();
  });

  it.each([
    ['fsync = off', 'unsafe fsync_off'],
    ['full_page_writes = off', 'unsafe full_page_writes_off'],
    ['synchronous_commit = off', 'unsafe synchronous_commit_off'],
    ['default_transaction_read_only = on', 'unsafe read_only'],
  ])('names %s, and strict refuses it', async (setting, finding) => {
    const [name] = setting.split(' ');
    await withSetting(`ALTER SYSTEM SET ${setting}`, `ALTER SYSTEM RESET ${name}`, async () => {
      expect(await findings()).toEqual([finding]);
      await expect(openCheckedLedger(url, 'strict')).rejects.toMatchObject({
        code: 'ledger_unsafe',
        message: expect.stringContaining(`(${finding.split(' ')[1]})`),
      });
      const { findings: examined } = await examineLedger(url);
      expect(examined.map(({ code }) => code)).toContain(finding.split(' ')[1]);
    });
    expect(await findings()).toEqual([]);
  });

  it('names synchronous_commit of the role, too', async () => {
    await server.query('ALTER ROLE postgres SET synchronous_commit = off');
    expect(await findings()).toEqual(['unsafe synchronous_commit_off']);
    await server.query('ALTER ROLE postgres RESET synchronous_commit');
  });

  it('names triggers that are switched off', async () => {
    const query = async (sql: string) => {
      const { Client } = (await import('pg')).default;
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query(sql);
      await client.end();
    };
    await query('ALTER TABLE holdfast.cases DISABLE TRIGGER cases_move');
    expect((await examineLedger(url)).findings).toEqual([
      {
        severity: 'unsafe',
        code: 'trigger_off',
        message: 'The trigger cases_move on holdfast.cases is switched off.',
      },
    ]);
    await query('ALTER TABLE holdfast.cases ENABLE TRIGGER cases_move');
    expect((await examineLedger(url)).findings).toEqual([]);
  });

  it('names standbys: one that follows by itself, one that is waited for, one that is missing', async () => {
    const lagging = await server.standby({ name: 'lagging' });
    standbys.push(lagging);
    expect(await findings()).toEqual(['unsafe standby_async']);
    expect((await ledgerStatus(url)).inspection.summary).toContain('standbys: lagging async');
    await expect(openCheckedLedger(url, 'strict')).rejects.toThrow(/lagging is asynchronous/);
    const { ledger, inspection } = await openCheckedLedger(url, 'standard');
    expect(inspection.findings.map(({ code }) => code)).toEqual(['standby_async']);
    await ledger.close();

    const witness = await server.standby({ name: 'witness', synchronous: true });
    standbys.push(witness);
    expect(await findings()).toEqual(['unsafe standby_async']);
    await lagging.stop();
    await expect.poll(() => findings(), { timeout: 10_000 }).toEqual([]);

    const plain = new URL(url);
    [plain.username, plain.password] = ['plain', 'plain'];
    await server.query("CREATE ROLE plain LOGIN PASSWORD 'plain' IN ROLE pg_read_all_data");
    expect(await findings(plain.href)).toEqual(['warn standby_hidden']);
    await server.query('GRANT pg_monitor TO plain');
    expect(await findings(plain.href)).toEqual([]);

    await server.query('ALTER ROLE postgres SET synchronous_commit = local');
    expect(await findings()).toEqual(['unsafe synchronous_commit_local']);
    await server.query(
      'SET synchronous_commit = local; ALTER ROLE postgres SET synchronous_commit = remote_write',
    );
    expect(await findings()).toEqual(['warn synchronous_commit_remote_write']);
    await server.query('SET synchronous_commit = local; ALTER ROLE postgres RESET synchronous_commit');

    // A standby itself may be looked at, and backed up, and is no ledger to write to.
    expect(await findings(witness.url('ledger'))).toEqual(['unsafe is_standby', 'unsafe read_only']);
    await expect(openCheckedLedger(witness.url('ledger'), 'strict')).rejects.toMatchObject({
      code: 'ledger_unsafe',
    });
    const examined = await examineLedger(witness.url('ledger'));
    expect(examined.audit).toBeNull();
    expect(examined.findings.map(({ code }) => code)).toContain('audit_unread');

    await witness.stop();
    await expect.poll(() => findings(), { timeout: 10_000 }).toEqual(['warn standby_missing']);
    await server.query('ALTER SYSTEM RESET synchronous_standby_names');
    await server.query('SELECT pg_reload_conf()');
    await expect.poll(() => findings(), { timeout: 10_000 }).toEqual([]);
  });

  it('names standbys that are away and would follow by themselves', async () => {
    await server.query("SELECT pg_create_physical_replication_slot('away')");
    expect(await findings()).toEqual(['unsafe standby_async_configured']);
    await server.query("SELECT pg_drop_replication_slot('away')");
  });
});
