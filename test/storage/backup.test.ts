import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sha256Hex } from '../../src/core/index.js';
import {
  backupLedger,
  examineLedger,
  ledgerStatus,
  openLedger,
  restoreLedger,
} from '../../src/storage/index.js';
import { asBilling } from './suite/fixtures.js';
import { contentOf, fullLedger, openWorkshop, type Workshop } from './workshop.js';

let shop: Workshop;
const path = (name: string) => shop.path(name);

beforeEach(() => {
  shop = openWorkshop();
});
afterEach(() => shop.remove());

describe.each(['sqlite', 'postgres'] as const)('a ledger on %s', (engine) => {
  it('is restored whole from a backup of the other engine or its own, and backs up to the same rows', async () => {
    const source = await fullLedger(shop);
    const before = await contentOf(source);
    const first = await backupLedger(source, path('first.jsonl'));
    const target = await shop.newTarget(engine);

    const restored = await restoreLedger(target, path('first.jsonl'));
    expect(restored.rows).toEqual(first.rows);
    expect(Object.values(first.rows).every((count) => count > 0)).toBe(true);
    expect(await contentOf(target)).toEqual(before);

    const again = await backupLedger(target, path('again.jsonl.gz'));
    expect(again.engine).toBe(engine);
    expect(again.rows).toEqual(first.rows);
    const rowsOf = (text: string) => text.split('\n').slice(1, -2);
    const unzipped = gunzipSync(readFileSync(path('again.jsonl.gz'))).toString();
    expect(rowsOf(unzipped).sort()).toEqual(rowsOf(readFileSync(path('first.jsonl'), 'utf8')).sort());
  });

  it('is another incarnation once restored, and goes on', async () => {
    const source = await fullLedger(shop);
    const { incarnation } = await backupLedger(source, path('b.jsonl'));
    const target = await shop.newTarget(engine);
    const { restored_as } = await restoreLedger(target, path('b.jsonl'));
    expect(restored_as).not.toBe(incarnation);
    const ledger = await openLedger(target);
    expect(await ledger.incarnation()).toBe(restored_as);
    await ledger.addNote({ ...asBilling, text: 'after the restore' });
    await ledger.close();
    const { findings, audit } = await examineLedger(target);
    expect(audit).toMatchObject({ cases: 4, broken: 0 });
    expect(findings.filter(({ severity, code }) => severity === 'unsafe' && code !== 'file_system')).toEqual(
      [],
    );
  });

  it('is restored once where two restore it at the same time', async () => {
    const { rows } = await backupLedger(await fullLedger(shop), path('b.jsonl'));
    const target = await shop.newTarget(engine);
    const both = await Promise.allSettled([1, 2].map(() => restoreLedger(target, path('b.jsonl'))));
    expect(both.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(both.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'already_exists' },
    });
    expect((await backupLedger(target, path('again.jsonl'))).rows).toEqual(rows);
  });

  it('is not restored over anything', async () => {
    await backupLedger(await fullLedger(shop), path('b.jsonl'));
    const target = await shop.newTarget(engine);
    await restoreLedger(target, path('b.jsonl'));
    const before = await contentOf(target);
    await expect(restoreLedger(target, path('b.jsonl'))).rejects.toMatchObject({ code: 'already_exists' });
    expect(await contentOf(target)).toEqual(before);
  });

  it('stays empty where a row of the backup is refused', async () => {
    await backupLedger(await fullLedger(shop), path('b.jsonl'));
    // The same case twice, with a digest and counts that are right again.
    const lines = readFileSync(path('b.jsonl'), 'utf8').trimEnd().split('\n');
    const trailer = JSON.parse(lines.pop() as string);
    trailer.rows.cases += 1;
    const case1 = lines.findIndex((line) => line.startsWith('["acme"') && line.includes('"CASE-1"'));
    lines.splice(case1, 0, lines[case1] as string);
    trailer.sha256 = sha256Hex(`${lines.join('\n')}\n`);
    writeFileSync(path('bad.jsonl'), `${[...lines, JSON.stringify(trailer)].join('\n')}\n`);

    const target = await shop.newTarget(engine);
    await expect(restoreLedger(target, path('bad.jsonl'))).rejects.toMatchObject({ code: 'backup_invalid' });
    if (engine === 'sqlite') expect(existsSync(target)).toBe(false);
    else expect((await ledgerStatus(target)).counts?.cases).toBe(0);
  });
});

describe('a backup', () => {
  it('is a new file for its owner alone', async () => {
    const source = await fullLedger(shop);
    await backupLedger(source, path('b.jsonl'));
    expect(statSync(path('b.jsonl')).mode & 0o777).toBe(0o600);
    const before = readFileSync(path('b.jsonl'));
    await expect(backupLedger(source, path('b.jsonl'))).rejects.toMatchObject({ code: 'already_exists' });
    expect(readFileSync(path('b.jsonl'))).toEqual(before);
    await expect(backupLedger(source, path('no/such/b.jsonl'))).rejects.toMatchObject({ code: 'usage' });
  });

  it('is of one moment, whatever is written meanwhile', async () => {
    const source = await fullLedger(shop);
    const ledger = await openLedger(source);
    const writing = (async () => {
      for (let n = 0; n < 50; n += 1) await ledger.addNote({ ...asBilling, text: `note ${n}` });
    })();
    const { rows } = await backupLedger(source, path('b.jsonl'));
    await writing;
    await ledger.close();
    await restoreLedger(path('other.db'), path('b.jsonl'));
    const { audit, findings } = await examineLedger(path('other.db'));
    expect(audit).toMatchObject({ entries: rows.audit, broken: 0 });
    expect(findings.filter(({ code }) => code === 'audit_broken')).toEqual([]);
  });

  const changed: [string, RegExp, (text: string) => string][] = [
    ['cut in a line', /is cut off/, (text) => text.slice(0, -20)],
    [
      'cut behind a line',
      /ends before its end/,
      (text) => text.slice(0, text.trimEnd().lastIndexOf('\n') + 1),
    ],
    ['changed', /its digest is another/, (text) => text.replace('INV-77', 'INV-78')],
    ['longer than its end', /goes on behind its end/, (text) => `${text}["more"]\n`],
    ['no JSON', /no JSON/, () => 'PK\u0003\u0004\n'],
    ['something else', /not a backup of a ledger/, () => '{"format":"other"}\n'],
    ['empty', /ends before its end/, () => ''],
    ['a row too short', /a row that is none/, (text) => text.replace(/^\["acme","refund".*$/m, '["acme"]')],
    [
      'a row of objects',
      /a row that is none/,
      (text) => text.replace(/^\["acme","refund".*$/m, '["acme","refund",{}]'),
    ],
  ];
  it.each(changed)('that is %s is refused, and nothing is made', async (_, problem, change) => {
    await backupLedger(await fullLedger(shop), path('b.jsonl'));
    writeFileSync(path('bad.jsonl'), change(readFileSync(path('b.jsonl'), 'utf8')));
    await expect(restoreLedger(path('other.db'), path('bad.jsonl'))).rejects.toMatchObject({
      code: 'backup_invalid',
      message: expect.stringMatching(problem),
    });
    expect(existsSync(path('other.db'))).toBe(false);
  });

  it('of a newer version is refused', async () => {
    await backupLedger(await fullLedger(shop), path('b.jsonl'));
    const text = readFileSync(path('b.jsonl'), 'utf8');
    writeFileSync(path('table.jsonl'), text.replace('{"table":"notes"', '{"table":"payments"'));
    writeFileSync(path('column.jsonl'), text.replace('"prev_hash","hash"', '"prev_hash","hash2"'));
    writeFileSync(path('version.jsonl'), text.replace('"version":1', '"version":2'));
    for (const name of ['table', 'column', 'version']) {
      await expect(restoreLedger(path('other.db'), path(`${name}.jsonl`))).rejects.toMatchObject({
        code: 'schema_newer',
      });
    }
  });

  it('is not restored into the file of another application', async () => {
    await backupLedger(await fullLedger(shop), path('b.jsonl'));
    const db = new Database(path('other.db'));
    db.exec('CREATE TABLE theirs (n)');
    db.close();
    const before = readFileSync(path('other.db'));
    await expect(restoreLedger(path('other.db'), path('b.jsonl'))).rejects.toMatchObject({
      code: 'config_invalid',
    });
    expect(readFileSync(path('other.db'))).toEqual(before);
    await expect(restoreLedger(path('new.db'), path('none.jsonl'))).rejects.toMatchObject({ code: 'usage' });
    expect(existsSync(path('new.db'))).toBe(false);
  });
});
