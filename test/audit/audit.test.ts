import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  type ChainHead,
  chain,
  compareWithLedger,
  exportChain,
  replay,
  verifyChain,
  verifyExport,
} from '../../src/audit/index.js';
import type { AuditEntry, AuditFact, CaseSnapshot } from '../../src/ledger/index.js';
import { createMemoryLedger } from '../../src/storage/index.js';
import {
  acceptance,
  asTriage,
  BILLING,
  ledgerWithCase,
  offered,
  openCase,
  ref,
  rejection,
  start,
  TRIAGE,
} from '../storage/suite/fixtures.js';

const AT = '2026-03-01T10:00:00.000Z';

function chainOf(facts: readonly AuditFact[], caseId = 'CASE-1'): AuditEntry[] {
  const entries: AuditEntry[] = [];
  let head: ChainHead | null = null;
  for (const fact of facts) {
    const { entry } = chain(head, fact, ref(caseId), AT);
    entries.push(entry);
    head = entry;
  }
  return entries;
}

const facts = (count: number): AuditFact[] =>
  Array.from({ length: count }, (_, n) => ({ type: 'note_added', actor: TRIAGE, data: { noteId: `n${n}` } }));

/** Puts an entry in again with a hash that fits its new content. */
function rehashed(entry: AuditEntry, over: Partial<AuditEntry>): AuditEntry {
  const { tenant, root, caseId, seq, at, prevHash, hash: _, ...fact } = { ...entry, ...over };
  return chain(seq === 1 ? null : { seq: seq - 1, hash: prevHash }, fact, { tenant, root, caseId }, at).entry;
}

function without<T>(list: readonly T[], index: number): T[] {
  return list.filter((_, n) => n !== index);
}

function put<T>(list: readonly T[], index: number, value: T): T[] {
  return list.map((old, n) => (n === index ? value : old));
}

describe('a chain', () => {
  const whole = chainOf(facts(6));
  const [e1, e2, e3, e4] = whole as [AuditEntry, AuditEntry, AuditEntry, AuditEntry];

  it('verifies when whole, and when empty', () => {
    expect(verifyChain(whole)).toEqual({ ok: true, entries: 6 });
    expect(verifyChain([])).toEqual({ ok: true, entries: 0 });
    expect(whole.map((entry) => entry.seq)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(e1.prevHash).toBe('');
    expect(e2.prevHash).toBe(e1.hash);
  });

  it('has hashes that no other document can have', () => {
    expect(chainOf(facts(1))[0]?.hash).not.toBe(chainOf(facts(1), 'CASE-2')[0]?.hash);
    const { hash, ...body } = e1;
    const bytes = JSON.stringify(
      Object.fromEntries(Object.entries(body).sort(([a], [b]) => (a < b ? -1 : 1))),
    );
    expect(hash).toBe(createHash('sha256').update(`holdfast-audit-v1\n${bytes}`).digest('hex'));
  });

  it.each<[string, readonly AuditEntry[], string, number]>([
    ['an edited entry', put(whole, 2, { ...e3, actor: BILLING }), 'tamper', 3],
    ['an edited entry with a hash that fits', put(whole, 2, rehashed(e3, { actor: BILLING })), 'tamper', 4],
    ['an added field', put(whole, 2, { ...e3, rule: 'H3' }), 'tamper', 3],
    ['a deleted entry', without(whole, 2), 'gap', 4],
    ['a deleted first entry', without(whole, 0), 'gap', 2],
    ['a cut-out middle', [e1, ...whole.slice(4)], 'gap', 5],
    ['two entries swapped', [e1, e3, e2, ...whole.slice(3)], 'order', 3],
    ['an entry put in twice', [e1, e2, e2, ...whole.slice(2)], 'fork', 2],
    ['an entry inserted', [e1, e2, rehashed(e3, { actor: BILLING }), e3, e4], 'fork', 3],
    ['an entry of another case', put(whole, 2, rehashed(e3, { caseId: 'CASE-2' })), 'tamper', 3],
    ['an older entry at the end', [...whole, e2], 'order', 2],
    [
      'a branch renumbered to follow on',
      [e1, e2, e3, rehashed(e4, { prevHash: e2.hash }), ...whole.slice(4)],
      'fork',
      4,
    ],
  ])('with %s does not verify', (_, entries, problem, seq) => {
    expect(verifyChain(entries)).toEqual({ ok: false, problem, seq });
  });
});

describe('an export', () => {
  const text = exportChain(chainOf(facts(3))) + exportChain(chainOf(facts(2), 'CASE-2'));
  const lines = text.trimEnd().split('\n');

  it('verifies from its text alone', () => {
    expect(verifyExport(text)).toEqual({ ok: true, cases: 2, entries: 5 });
    expect(verifyExport('')).toEqual({ ok: true, cases: 0, entries: 0 });
  });

  it('names the case and the place where it was changed', () => {
    const where = { ok: false, tenant: 'acme', root: ref().root };
    expect(verifyExport(without(lines, 1).join('\n'))).toEqual({
      ...where,
      problem: 'gap',
      caseId: 'CASE-1',
      seq: 3,
    });
    expect(verifyExport(text.replace('"n1"', '"n9"'))).toMatchObject({ ...where, problem: 'tamper', seq: 2 });
    expect(verifyExport(put(lines, 4, lines[3] ?? '').join('\n'))).toMatchObject({
      problem: 'fork',
      caseId: 'CASE-2',
    });
  });

  it.each(['{"a":1}', 'null', '7', '[]', '{"seq":'])('refuses %s as an entry', (line) => {
    expect(verifyExport(`${text}${line}\n`)).toEqual({ ok: false, problem: 'malformed', line: 6 });
  });
});

/** A case with something of everything in it. */
async function richCase(): Promise<CaseSnapshot> {
  const { ledger, clock } = await ledgerWithCase(async (clock) => createMemoryLedger({ clock }));
  await ledger.addNote({ ...asTriage, text: 'first look' });
  await ledger.startEffect({ ...asTriage, ...start('r0', '5.00') });
  await ledger.settleEffect({ ...asTriage, key: 'r0', state: 'failed', outcome: null });
  await ledger.startEffect({ ...asTriage, ...start('r0', '6.00') });
  await ledger.settleEffect({ ...asTriage, key: 'r0', state: 'done', outcome: 're_0' });
  await ledger.startEffect({ ...asTriage, ...start('r1', '7.00') });
  clock.advance(30_000);
  await offered(ledger, clock);
  await ledger.reject(rejection(clock, 'evidence_empty'));
  const { key } = await offered(ledger, clock, { attempt: 2 });
  await ledger.voidOffer({ key, writer: TRIAGE, reason: 'changed', expired: false, answer: '{}' });
  const third = await offered(ledger, clock, { attempt: 3 });
  await ledger.accept(acceptance(clock, { attempt: 3 }));
  await ledger.accept(acceptance(clock, { attempt: 3 }));
  await ledger.accept(acceptance(clock, { attempt: 3, text: 'other bytes' }));
  await ledger.recordReceipt({ key: third.key, receipt: 'jws', receiptKey: '{}' });
  await ledger.addNote({ ...asTriage, text: 'late' }).catch(() => undefined);
  await ledger.settleEffect({ ...asTriage, key: 'r1', state: 'done', outcome: null }).catch(() => undefined);
  await ledger.accept(acceptance(clock, { sender: BILLING, epoch: 4, toAgent: TRIAGE }));
  const again = { ref: ref(), writer: TRIAGE, epoch: 5 };
  const [open] = await ledger.listWork('acme', { state: 'open' });
  await ledger.settleWork({ ...again, workId: open?.id ?? '', state: 'done', result: '{"ok":true}' });
  return ledger.snapshot(ref());
}

describe('replay', () => {
  it('[R-155] rebuilds from the audit alone what the ledger holds', async () => {
    const snapshot = await richCase();
    expect(verifyChain(snapshot.audit)).toMatchObject({ ok: true });
    const replayed = replay(snapshot.audit);
    expect(replayed.case).toMatchObject({ owner: TRIAGE, epoch: 5, status: 'open' });
    expect([...replayed.offers.values()].map((offer) => offer.state)).toEqual([
      'rejected',
      'withdrawn',
      'accepted',
    ]);
    expect([...replayed.decisions.values()].map((decision) => decision.verdict)).toEqual([
      'rejected',
      'tombstone',
      'accepted',
      'accepted',
    ]);
    expect([...replayed.work.values()].map((item) => item.state)).toEqual(['superseded', 'done']);
    expect([...replayed.effects].map(([key, effect]) => [key, effect.state, effect.amount?.amount])).toEqual([
      ['r0', 'done', '6.00'],
      ['r1', 'started', '7.00'],
    ]);
    expect(compareWithLedger(replayed, snapshot)).toEqual([]);
  });

  it('finds every row that is not what the audit says', async () => {
    const snapshot = await richCase();
    const replayed = replay(snapshot.audit);
    const first = <T>(list: readonly T[], over: Partial<T>): T[] =>
      list.map((row, n) => (n === 0 ? { ...row, ...over } : row));
    const changes: [Partial<CaseSnapshot>, string][] = [
      [{ case: snapshot.case && { ...snapshot.case, owner: BILLING } }, 'case: owner differs'],
      [{ case: snapshot.case && { ...snapshot.case, epoch: 6 } }, 'case: epoch differs'],
      [{ case: snapshot.case && { ...snapshot.case, tasksLeft: 99 } }, 'case: bounds differs'],
      [{ case: null }, 'case: only in the audit'],
      [{ offers: first(snapshot.offers, { state: 'accepted' }) }, 'state differs'],
      [{ offers: first(snapshot.offers, { receipt: 'x' }) }, 'receipt differs'],
      [{ decisions: first(snapshot.decisions, { answer: 'x' }) }, 'answer differs'],
      [{ decisions: snapshot.decisions.slice(1) }, 'only in the audit'],
      [{ work: first(snapshot.work, { envelope: '{}' }) }, 'envelope differs'],
      [{ effects: first(snapshot.effects, { state: 'failed' }) }, 'effect r0: state differs'],
      [{ effects: first(snapshot.effects, { amount: null }) }, 'effect r0: amount differs'],
      [{ notes: first(snapshot.notes, { text: 'x' }) }, 'digest differs'],
      [{ notes: first(snapshot.notes, { id: 'note_x' }) }, 'note note_x: only in the ledger'],
    ];
    for (const [change, expected] of changes) {
      const found = compareWithLedger(replayed, { ...snapshot, ...change });
      expect(found.join('\n')).toContain(expected);
    }
  });

  it('knows nothing of a case that was never opened', async () => {
    const { ledger, clock } = await ledgerWithCase(async (clock) => createMemoryLedger({ clock }));
    await ledger.reject(rejection(clock, 'case_unknown', { caseId: 'CASE-9' }));
    const snapshot = await ledger.snapshot(ref('CASE-9'));
    expect(replay(snapshot.audit).case).toBeNull();
    expect(compareWithLedger(replay(snapshot.audit), snapshot)).toEqual([]);
    await openCase(ledger, 'CASE-9');
    const opened = await ledger.snapshot(ref('CASE-9'));
    expect(compareWithLedger(replay(opened.audit), opened)).toEqual([]);
  });

  it('refuses entries that follow from nothing', () => {
    for (const fact of [
      { type: 'case_opened', actor: TRIAGE },
      { type: 'case_closed', actor: TRIAGE },
      { type: 'offer_offered', actor: TRIAGE, handoffId: 'CASE-1:4', attempt: 1 },
      { type: 'effect_settled', actor: TRIAGE, data: { key: 'r1', state: 'done' } },
      { type: 'work_settled', actor: TRIAGE, data: { workId: 'w1', state: 'done' } },
    ] as const) {
      expect(() => replay(chainOf([fact]))).toThrow(expect.objectContaining({ code: 'audit_broken' }));
    }
  });

  it('goes on for a long life', () => {
    const opened: AuditFact = {
      type: 'case_opened',
      actor: TRIAGE,
      epochAfter: 1,
      data: { kind: 'refund', owner: TRIAGE, bounds: 'b' },
    };
    const note = (n: number): AuditFact => ({
      type: 'note_added',
      actor: TRIAGE,
      epochBefore: 1,
      epochAfter: 1,
      digest: 'd',
      data: { noteId: `n${n}` },
    });
    const entries = chainOf([opened, ...Array.from({ length: 10_000 }, (_, n) => note(n))]);
    expect(verifyChain(entries)).toEqual({ ok: true, entries: 10_001 });
    expect(replay(entries).notes.size).toBe(10_000);
  });
});
