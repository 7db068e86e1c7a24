import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LEDGER_TABLES } from '../../src/storage/care/tables.js';
import {
  backupLedger,
  examineLedger,
  isHealthy,
  ledgerStatus,
  migrateLedger,
} from '../../src/storage/index.js';
import { fullLedger, openWorkshop, type Workshop } from './workshop.js';

let shop: Workshop;
const path = (name: string) => shop.path(name);

beforeEach(() => {
  shop = openWorkshop();
});
afterEach(() => shop.remove());

describe.each(['sqlite', 'postgres'] as const)('a ledger on %s', (engine) => {
  it('says its state, and changes nothing by it', async () => {
    const target = await shop.newTarget(engine);
    expect(await migrateLedger(target)).toMatchObject({ from: 0 });
    const { from, to } = await migrateLedger(target);
    expect(from).toBe(to);
    const status = await ledgerStatus(target);
    expect(status).toMatchObject({
      engine,
      schema: { found: to, known: to },
      counts: { cases: 0, open_offers: 0 },
    });
    expect(status.incarnation).toMatch(/^inc_/);
    expect((await ledgerStatus(target)).incarnation).toBe(status.incarnation);
  });
});

describe('the state of a ledger', () => {
  it('counts what is open, unknown and quarantined', async () => {
    const { counts } = await ledgerStatus(await fullLedger(shop));
    expect(counts).toEqual({
      cases: 4,
      open_offers: 0,
      open_work: 2,
      unknown_effects: 1,
      quarantined: 1,
      waiting_peers: 1,
    });
  });

  it('is not made by asking for it', async () => {
    await expect(ledgerStatus(path('none.db'))).rejects.toMatchObject({ code: 'ledger_unavailable' });
    await expect(examineLedger(path('none.db'))).rejects.toMatchObject({ code: 'ledger_unavailable' });
    expect(existsSync(path('none.db'))).toBe(false);
    const target = await shop.newTarget('postgres');
    expect(await ledgerStatus(target)).toMatchObject({
      schema: { found: 0 },
      incarnation: null,
      counts: null,
    });
    await expect(backupLedger(target, path('b.jsonl'))).rejects.toThrow(/no ledger/);
    expect(existsSync(path('b.jsonl'))).toBe(false);
    expect(await shop.databases[0]?.query("SELECT 1 FROM pg_namespace WHERE nspname = 'holdfast'")).toEqual(
      [],
    );
  });

  it('names every table and column of the ledger that a backup keeps', async () => {
    const db = new Database(await fullLedger(shop));
    const kept = new Map(LEDGER_TABLES.map(({ name, columns }) => [name, [...columns].sort()]));
    const tables = db
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
      .pluck()
      .all();
    const others = tables.filter((name) => !kept.has(name));
    expect(others.sort()).toEqual(['claims', 'holders', 'meta', 'migrations']);
    for (const [name, columns] of kept) {
      const found = db.pragma(`table_info(${name})`) as { name: string }[];
      const names = found.map((column) => column.name).filter((column) => column !== 'holder');
      expect(names.sort()).toEqual(columns);
    }
    db.close();

    const target = await shop.newTarget('postgres');
    await migrateLedger(target);
    const found = (await shop.databases[0]?.query(
      "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'holdfast'",
    )) as { table_name: string; column_name: string }[];
    const extra = found.filter(
      ({ table_name: table, column_name: column }) =>
        kept.has(table) && column !== 'ord' && !kept.get(table)?.includes(column),
    );
    expect(extra.map((one) => `${one.table_name}.${one.column_name}`).sort()).toEqual([
      'audit.commit_id',
      'kinds.revision',
      'kinds.separate',
      'pending.holder',
      'push_configs.holder',
    ]);
    const tableNames = new Set(found.map(({ table_name }) => table_name));
    expect([...tableNames].filter((name) => !kept.has(name)).sort()).toEqual([
      'audit_heads',
      'claims',
      'holders',
      'meta',
      'migrations',
    ]);
  });
});

describe('the doctor', () => {
  const tamper = (file: string, sql: string) => {
    const db = new Database(file);
    db.pragma('foreign_keys = OFF');
    db.exec(sql);
    db.close();
  };
  const codes = async (file: string) => (await examineLedger(file)).findings.map(({ code }) => code);

  it('finds a sound ledger sound, and says what only a person can settle', async () => {
    const examined = await examineLedger(await fullLedger(shop));
    expect(examined.audit).toMatchObject({ cases: 4, broken: 0 });
    expect(examined.findings.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['effects_unknown', 'cases_quarantined']),
    );
    expect(examined.findings.some(({ code }) => code === 'audit_broken' || code === 'damaged')).toBe(false);
  });

  it('finds a ledger that says something other than its audit', async () => {
    const file = await fullLedger(shop);
    tamper(
      file,
      "DROP TRIGGER cases_move; UPDATE cases SET owner = 'https://mallory.example' WHERE case_id = 'CASE-2'",
    );
    const examined = await examineLedger(file);
    expect(isHealthy(examined)).toBe(false);
    expect(examined.audit).toMatchObject({ cases: 4, broken: 1 });
    expect(examined.findings).toContainEqual({
      severity: 'unsafe',
      code: 'audit_broken',
      message: expect.stringContaining('CASE-2'),
    });
  });

  it('finds a case without any audit, and a reference to nothing', async () => {
    const file = await fullLedger(shop);
    tamper(file, "DROP TRIGGER audit_kept; DELETE FROM audit WHERE case_id = 'CASE-2'");
    expect(await codes(file)).toContain('audit_broken');
    tamper(file, "DROP TRIGGER cases_kept; DELETE FROM cases WHERE case_id = 'CASE-1'");
    expect(await codes(file)).toContain('damaged');
  });

  it('finds pages that are damaged', async () => {
    const file = await fullLedger(shop);
    const bytes = readFileSync(file);
    bytes.fill(0xff, 4096 * 3, 4096 * 12);
    writeFileSync(file, bytes);
    const examined = await examineLedger(file);
    expect(examined.findings.map(({ code }) => code)).toContain('damaged');
    expect(examined.audit).toBeNull();
  });

  it('leaves a ledger of a newer schema alone', async () => {
    const file = await fullLedger(shop);
    tamper(file, "INSERT INTO migrations VALUES (99, 'later', 'x')");
    const examined = await examineLedger(file);
    expect(examined.findings).toContainEqual(
      expect.objectContaining({ severity: 'unsafe', code: 'schema_newer' }),
    );
    await expect(backupLedger(file, path('b.jsonl'))).rejects.toMatchObject({ code: 'schema_newer' });
    await expect(migrateLedger(file)).rejects.toMatchObject({ code: 'schema_newer' });
  });
});
