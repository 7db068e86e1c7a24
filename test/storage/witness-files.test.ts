import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openWitnessFiles, type Seen, type WitnessFiles } from '../../src/storage/index.js';

let dir: string;
let files: WitnessFiles;
let more: WitnessFiles[];

beforeEach(() => {
  dir = join(mkdtempSync(join(tmpdir(), 'holdfast-witness-')), 'witness');
  more = [];
  files = open();
});

afterEach(() => {
  for (const one of more) one.close();
  rmSync(join(dir, '..'), { recursive: true, force: true });
});

function open(options: Parameters<typeof openWitnessFiles>[1] = {}): WitnessFiles {
  const opened = openWitnessFiles(dir, options);
  more.push(opened);
  return opened;
}

const seen = (caseId: string, epoch: number, seq: number, receipt?: string): Seen => ({
  ref: { tenant: 'default', root: 'https://triage.example', caseId },
  epoch,
  seq,
  hash: `hash-${caseId}-${seq}`,
  ...(receipt === undefined ? {} : { receipt }),
});

async function all(from: WitnessFiles, drop: readonly string[] = [], rewrite = false): Promise<Seen[]> {
  const found: Seen[] = [];
  const look = async (cases: readonly Seen[]) => {
    found.push(...cases);
    return cases.filter(({ ref }) => !drop.includes(ref.caseId));
  };
  await from.visit(look, { rewrite });
  return found.sort((a, b) => (a.ref.caseId < b.ref.caseId ? -1 : 1));
}

const journals = () => readdirSync(dir).filter((name) => name !== 'tmp' && name !== 'ledger.json');

describe("the witness's journals", () => {
  it('show each case once, as last seen, whichever process saw it', async () => {
    const other = open();
    await Promise.all([
      files.append(seen('A', 1, 1)),
      files.append(seen('B', 1, 1)),
      other.append(seen('A', 2, 5)),
    ]);
    await files.append(seen('A', 1, 4));
    await other.append(seen('B', 1, 3, 'receipt'));
    await files.append(seen('B', 1, 7));
    expect(await all(open())).toEqual([seen('A', 2, 5), seen('B', 1, 7, 'receipt')]);
  });

  it('let a higher epoch stand for a case even on a shorter chain, as a recovery leaves it', async () => {
    await files.append(seen('A', 4, 90));
    await files.append(seen('A', 5, 12));
    expect(await all(files)).toEqual([seen('A', 5, 12)]);
  });

  it('are readable by their owner alone', async () => {
    await files.append(seen('A', 1, 1));
    for (const name of journals()) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
  });

  it('leave out a last line that a crash cut off, and refuse any other damage', async () => {
    await files.append(seen('A', 1, 1));
    const [name = ''] = journals();
    const whole = readFileSync(join(dir, name), 'utf8');
    appendFileSync(join(dir, name), whole.slice(0, -3));
    expect(await all(open())).toEqual([seen('A', 1, 1)]);
    writeFileSync(join(dir, name), `${whole.slice(5)}${whole}`);
    await expect(all(open())).rejects.toMatchObject({ code: 'config_invalid' });
  });

  it('lose nothing when one process rewrites them while others append', async () => {
    const writers = [files, open(), open()];
    const expected: string[] = [];
    for (let round = 0; round < 40; round++) {
      const appends = writers.map((writer, index) => {
        const caseId = `C-${String(round).padStart(2, '0')}-${index}`;
        expected.push(caseId);
        return writer.append(seen(caseId, 1, 1));
      });
      await Promise.all([
        ...appends,
        ...(round % 3 === 0 ? [all(open(), [], true), all(files, [], true)] : []),
      ]);
    }
    await all(files, [], true);
    const kept = (await all(open())).map(({ ref }) => ref.caseId);
    expect(kept).toEqual([...expected].sort());
    expect(journals()).toHaveLength(1);
  });

  it('drop what need not be watched any longer, and come down to one file, or none', async () => {
    await files.append(seen('A', 1, 1));
    await open().append(seen('B', 1, 1));
    await all(files, ['A'], true);
    expect(await all(open())).toEqual([seen('B', 1, 1)]);
    expect(journals()).toHaveLength(1);
    await all(files, ['B'], true);
    expect(files.size()).toEqual({ bytes: 0, files: 0 });
  });

  it('are merged in parts where they are large', async () => {
    const parted = open({ partBytes: 2_000 });
    const ids = Array.from({ length: 300 }, (_, index) => `C-${String(index).padStart(3, '0')}`);
    for (const epoch of [2, 1]) await Promise.all(ids.map((id) => parted.append(seen(id, epoch, epoch))));
    expect(await all(parted, [], true)).toEqual(ids.map((id) => seen(id, 2, 2)));
    expect(await all(open())).toEqual(ids.map((id) => seen(id, 2, 2)));
    expect(readdirSync(join(dir, 'tmp'))).toEqual([]);
  });
});
