import { type ChildProcess, spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CaseRef, type Holdfast, openHoldfast, parseCaseFile } from '../../src/index.js';
import { type Agent, CASE_FILE, CONTRACT, initPair, run, temporaryFolder } from '../cli/support.js';

let folder: ReturnType<typeof temporaryFolder>;
let triage: Agent;
let billing: Agent;
let ledger: string;
let opened: Holdfast[];
let children: ChildProcess[];

beforeEach(async () => {
  folder = temporaryFolder();
  ({ triage, billing } = await initPair(folder.path));
  ledger = join(folder.path, 'ledger.db');
  allowEffects(triage);
  allowEffects(billing);
  opened = [];
  children = [];
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await closeAll();
  folder.remove();
});

/** So that an opener may act, too: policy says who may start what. */
function allowEffects({ dir }: Agent): void {
  const file = join(dir, 'holdfast.yaml');
  const text = readFileSync(file, 'utf8');
  writeFileSync(file, text.replace('"*": [refund]', `"*": [refund]\n        "${triage.url}": [refund]`));
}

async function open({ dir }: Agent): Promise<Holdfast> {
  const holdfast = await openHoldfast({ dir });
  opened.push(holdfast);
  return holdfast;
}

async function closeAll(): Promise<void> {
  await Promise.all(opened.splice(0).map((holdfast) => holdfast.close()));
}

/** Triage hands a case of its own to billing. */
async function offer(from: Holdfast, ref: CaseRef) {
  const { artifactId } = await from.addEvidence(Buffer.from('charged twice'), {
    filename: 'claim.txt',
    mediaType: 'text/plain',
  });
  const record = { ...JSON.parse(readFileSync(CASE_FILE, 'utf8')), case_id: ref.caseId };
  const caseFile = parseCaseFile(Buffer.from(JSON.stringify(record)));
  return from.handOff({ ref, caseFile, to: billing.url, contract: CONTRACT, evidence: [{ artifactId }] });
}

async function startBoth(): Promise<{ from: Holdfast; to: Holdfast }> {
  const from = await open(triage);
  const to = await open(billing);
  to.onHandoff(CONTRACT, {});
  await from.start();
  await to.start();
  return { from, to };
}

const copy = () => `${ledger}.copy`;
const restore = () => copyFileSync(copy(), ledger);
const effect = (ref: CaseRef, key: string) => ({
  ...{ ref, epoch: 1, key, operation: 'refund' },
  amount: { amount: '1.00', currency: 'EUR' },
});

describe('a ledger that lost what was committed', () => {
  it('closes a case whose acceptance it lost, on both sides, and serves the others', async () => {
    const { from } = await startBoth();
    const { ref } = await from.openCase({ caseId: 'CASE-1', kind: 'refund' });
    await closeAll();
    copyFileSync(ledger, copy());
    const again = await startBoth();
    expect(await offer(again.from, ref)).toMatchObject({ state: 'accepted', epoch: 2 });
    await closeAll();

    for (const agent of [triage, billing]) {
      restore();
      const holdfast = await open(agent);
      expect(await holdfast.ledger.listQuarantined('default')).toMatchObject([
        {
          ref,
          reason: 'epoch_regressed',
          witnessed: { epoch: 2, receipt: expect.stringContaining('.') },
          found: { epoch: 1, seq: 1 },
        },
      ]);
      const note = holdfast.note({ ref, epoch: 1, text: 'as if nothing had been' });
      await expect(note).rejects.toMatchObject({ code: 'case_quarantined' });
      await closeAll();
    }
    const after = await startBoth();
    await expect(offer(after.from, ref)).rejects.toMatchObject({ code: 'case_quarantined' });
    const other = await after.from.openCase({ caseId: 'CASE-2', kind: 'refund' });
    expect(await offer(after.from, other.ref)).toMatchObject({ state: 'accepted', epoch: 2 });
  });

  it('closes a case of which it lost an effect that may have happened', async () => {
    const first = await open(triage);
    await first.applyKinds();
    const { ref } = await first.openCase({ caseId: 'CASE-1', kind: 'refund' });
    await closeAll();
    copyFileSync(ledger, copy());
    const second = await open(triage);
    await second.startEffect(effect(ref, 'refund-1'));
    await closeAll();
    restore();
    const third = await open(triage);
    expect(await third.ledger.listQuarantined('default')).toMatchObject([
      { ref, reason: 'audit_regressed', witnessed: { epoch: 1, seq: 2 }, found: { epoch: 1, seq: 1 } },
    ]);
    await expect(third.startEffect(effect(ref, 'refund-1'))).rejects.toMatchObject({
      code: 'case_quarantined',
    });
  });

  it('closes a case that went on in another way, although it is as long', async () => {
    const first = await open(triage);
    await first.applyKinds();
    const { ref } = await first.openCase({ caseId: 'CASE-1', kind: 'refund' });
    await closeAll();
    copyFileSync(ledger, copy());
    const second = await open(triage);
    await second.startEffect(effect(ref, 'refund-1'));
    await closeAll();
    restore();
    renameSync(join(triage.dir, 'witness'), join(triage.dir, 'witness.away'));
    const blind = await open(triage);
    for (const key of ['refund-2', 'refund-3']) {
      await blind.startEffect(effect(ref, key));
      await blind.settleEffect({ ref, epoch: 1, key, state: 'done' });
    }
    await closeAll();
    rmSync(join(triage.dir, 'witness'), { recursive: true });
    renameSync(join(triage.dir, 'witness.away'), join(triage.dir, 'witness'));
    const third = await open(triage);
    expect(await third.ledger.listQuarantined('default')).toMatchObject([{ ref, reason: 'audit_forked' }]);
  });

  it('finds nothing wrong with a ledger that only went on', async () => {
    const { from } = await startBoth();
    await offer(from, (await from.openCase({ caseId: 'CASE-1', kind: 'refund' })).ref);
    await closeAll();
    const { to } = await startBoth();
    const ref = to.caseRef('CASE-1', triage.url);
    await to.startEffect({ ...effect(ref, 'refund-1'), epoch: 2 });
    await to.settleEffect({ ref, epoch: 2, key: 'refund-1', state: 'done' });
    const [item] = await to.ledger.listWork('default', { state: 'open' });
    await to.settleWork({ workId: item?.id ?? '', state: 'done', result: { decision: 'refunded' } });
    await to.closeCase({ ref, epoch: 2 });
    await closeAll();
    const again = await startBoth();
    expect(await again.from.ledger.listQuarantined('default')).toEqual([]);
    expect((await run('attention', '--dir', triage.dir)).out).toBe('Nothing waits for a person.\n');
    // A closed case was looked at for the last time.
    expect((await run('witness', 'show', '--json', '--dir', billing.dir)).json).toMatchObject({ cases: 0 });
  });

  it('is found out where a torn WAL opens clean without its tail', async () => {
    const writer = fileURLToPath(new URL('witness-writer.ts', import.meta.url));
    const child = spawn(process.execPath, ['--import', 'tsx', writer, triage.dir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    const acknowledged: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      if (acknowledged.push(line) === 60) break;
    }
    child.kill('SIGSTOP');
    copyFileSync(ledger, copy());
    copyFileSync(`${ledger}-wal`, `${copy()}-wal`);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
    truncateSync(`${copy()}-wal`, Math.floor(statSync(`${copy()}-wal`).size * 0.7));
    for (const ending of ['', '-wal']) renameSync(`${copy()}${ending}`, `${ledger}${ending}`);
    rmSync(`${ledger}-shm`, { force: true });

    const holdfast = await open(triage);
    const kept = (await holdfast.ledger.listCases('default')).map(({ ref }) => ref.caseId);
    const lost = acknowledged.filter((caseId) => !kept.includes(caseId));
    expect(lost.length).toBeGreaterThan(0);
    expect(kept.length).toBeGreaterThan(0);
    const quarantined = await holdfast.ledger.listQuarantined('default');
    expect(quarantined.map(({ ref }) => ref.caseId).sort()).toEqual([...lost].sort());
    expect(new Set(quarantined.map(({ reason }) => reason))).toEqual(new Set(['case_missing']));
    for (const caseId of lost) {
      await expect(holdfast.openCase({ caseId, kind: 'refund' })).rejects.toMatchObject({
        code: 'case_quarantined',
      });
    }
    expect(
      (await holdfast.note({ ref: holdfast.caseRef(kept[0] ?? ''), epoch: 1, text: 'goes on' })).epoch,
    ).toBe(1);
  }, 60_000);
});

describe('a ledger that is not the one', () => {
  it('is refused until a person takes it, and what it lacks is then quarantined', async () => {
    const first = await open(triage);
    await first.applyKinds();
    const { ref } = await first.openCase({ caseId: 'CASE-1', kind: 'refund' });
    await closeAll();
    renameSync(ledger, copy());
    const elsewhere = await open(billing);
    const incarnation = await elsewhere.ledger.incarnation();
    await closeAll();

    await expect(openHoldfast({ dir: triage.dir })).rejects.toMatchObject({ code: 'ledger_changed' });
    const refused = await run('case', 'list', '--dir', triage.dir);
    expect(refused).toMatchObject({ exit: 13 });
    expect(refused.err).toContain(`holdfast witness accept ${incarnation}`);
    expect(await run('witness', 'accept', 'inc_other', '--dir', triage.dir)).toMatchObject({ exit: 13 });
    const accepted = await run('witness', 'accept', incarnation, '--dir', triage.dir, '--json');
    expect(accepted.json).toEqual({ incarnation, cases: 1, quarantined: 1 });

    const misspelt = await run('witness', 'accept', 'inc_other', '--dir', triage.dir);
    expect(misspelt).toMatchObject({ exit: 13, out: '' });
    expect(misspelt.err).toContain(`The ledger is ${incarnation}, not inc_other; nothing was changed.`);

    const holdfast = await open(triage);
    expect(await holdfast.ledger.listAttention('default')).toMatchObject([
      { what: 'case_quarantined', ref, data: { reason: 'case_missing', found: {} } },
    ]);
    const shown = await run('attention', '--dir', triage.dir);
    expect(shown.out).toMatch(
      /CASE-1 +case quarantined .*case_missing: witnessed epoch 1, entry 1 \([0-9a-f]{12}\), found nothing/,
    );
  });

  it('is not made anew in the place of one that is gone', async () => {
    const first = await open(triage);
    await first.applyKinds();
    await first.openCase({ caseId: 'CASE-1', kind: 'refund' });
    await closeAll();
    rmSync(ledger);
    await expect(openHoldfast({ dir: triage.dir })).rejects.toMatchObject({
      code: 'ledger_changed',
      message: expect.stringContaining(ledger),
    });
    expect(existsSync(ledger)).toBe(false);
  });

  it('is missed where it held only a rejection of a case that it did not know', async () => {
    const file = join(billing.dir, 'holdfast.yaml');
    writeFileSync(file, readFileSync(file, 'utf8').replace('ledger: ../ledger.db', 'ledger: own.db'));
    const { from } = await startBoth();
    const { ref } = await from.openCase({ caseId: 'CASE-1', kind: 'refund' });
    await offer(from, ref);
    await closeAll();
    rmSync(join(billing.dir, 'own.db'));
    await expect(openHoldfast({ dir: billing.dir })).rejects.toMatchObject({ code: 'ledger_changed' });
    expect(existsSync(join(billing.dir, 'own.db'))).toBe(false);
  });

  it('may be any where no case was seen yet', async () => {
    await (await open(triage)).applyKinds();
    await closeAll();
    rmSync(ledger);
    expect(await (await open(triage)).ledger.listCases('default')).toEqual([]);
  });
});

describe('a damaged ledger file', () => {
  it('is not served from', async () => {
    const first = await open(triage);
    await first.applyKinds();
    for (let n = 0; n < 20; n += 1) await first.openCase({ caseId: `CASE-${n}`, kind: 'refund' });
    await closeAll();
    const bytes = readFileSync(ledger);
    const page = bytes.readUInt16BE(16);
    const at = bytes.indexOf('"case_opened"');
    bytes.fill(0xa5, Math.floor(at / page) * page, Math.floor(at / page) * page + 200);
    writeFileSync(ledger, bytes);
    await expect(openHoldfast({ dir: triage.dir })).rejects.toMatchObject({
      code: 'ledger_unavailable',
      message: 'The ledger file is damaged.',
    });
    expect(await run('serve', '--dir', triage.dir)).toMatchObject({
      exit: 10,
      err: expect.stringContaining('The ledger file is damaged.'),
    });
  });
});
