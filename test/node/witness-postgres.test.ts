import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Holdfast, openHoldfast } from '../../src/index.js';
import { initAgent } from '../../src/node/index.js';
import { temporaryFolder } from '../cli/support.js';
import { createTestDatabase, type TestDatabase } from '../postgres/database.js';

let folder: ReturnType<typeof temporaryFolder>;
let database: TestDatabase;
let opened: Holdfast[];

beforeEach(async () => {
  folder = temporaryFolder();
  database = await createTestDatabase();
  opened = [];
  await initAgent({ dir: folder.path, agent: 'triage', url: 'http://127.0.0.1:4100', ledger: database.url });
  appendFileSync(join(folder.path, 'holdfast.yaml'), '\nlog:\n  level: silent\n');
});

afterEach(async () => {
  await closeAll();
  await database.drop();
  folder.remove();
});

async function open(): Promise<Holdfast> {
  const holdfast = await openHoldfast({ dir: folder.path });
  opened.push(holdfast);
  return holdfast;
}

async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((holdfast) => holdfast.close()));
}

/** What the agent holds to be the server it worked with. */
const seenFile = () => join(folder.path, 'witness', 'ledger.json');
const seen = () => JSON.parse(readFileSync(seenFile(), 'utf8'));
const pretend = (change: object) => writeFileSync(seenFile(), JSON.stringify({ ...seen(), ...change }));

describe('a ledger on PostgreSQL', () => {
  it('is known by its server and timeline, and not served from an old primary that came back', async () => {
    const first = await open();
    await first.applyKinds();
    await first.openCase({ caseId: 'CASE-1', kind: 'refund' });
    await closeAll();
    expect(seen()).toEqual({
      incarnation: expect.stringMatching(/^inc_/),
      system: expect.stringMatching(/^\d+$/),
      timeline: 1,
      used: true,
    });

    pretend({ timeline: 2 });
    await expect(openHoldfast({ dir: folder.path })).rejects.toMatchObject({
      code: 'ledger_changed',
      data: { found: 1, witnessed: 2 },
    });

    pretend({ timeline: 1, system: '7' });
    const again = await open();
    expect(await again.ledger.listQuarantined('default')).toEqual([]);
    expect(seen().system).not.toBe('7');
  });

  it('closes a case of which it lost commits, as a standby that was behind has', async () => {
    const first = await open();
    await first.applyKinds();
    for (const caseId of ['CASE-1', 'CASE-2']) await first.openCase({ caseId, kind: 'refund' });
    await closeAll();
    await database.query(
      "SET session_replication_role = replica; DELETE FROM holdfast.audit WHERE case_id = 'CASE-2'; DELETE FROM holdfast.audit_heads WHERE case_id = 'CASE-2'; DELETE FROM holdfast.cases WHERE case_id = 'CASE-2'",
    );
    const second = await open();
    const ref = second.caseRef('CASE-2');
    expect(await second.ledger.listAttention('default')).toMatchObject([
      { what: 'case_quarantined', ref, data: { reason: 'case_missing', witnessed: { epoch: 1, seq: 1 } } },
    ]);
    await expect(second.openCase({ caseId: 'CASE-2', kind: 'refund' })).rejects.toMatchObject({
      code: 'case_quarantined',
    });
    expect((await second.note({ ref: second.caseRef('CASE-1'), epoch: 1, text: 'goes on' })).epoch).toBe(1);
  });
});
