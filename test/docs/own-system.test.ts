import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterAll, expect, it } from 'vitest';
import { run, temporaryFolder } from '../cli/support.js';

const PAGE = readFileSync('docs/guide/own-system.md', 'utf8');
const TOKEN = 'TICKET-7001:1:http://127.0.0.1:4100';
const folder = temporaryFolder();
afterAll(() => folder.remove());

it('[R-078] keeps the ledger in the database of the case management, as its page is written', async () => {
  const at = (text: string) => text.replaceAll('.holdfast', folder.path);
  const database = () => new Database(join(folder.path, 'desk.db'), { timeout: 5_000 });
  const blocks = [...PAGE.matchAll(/^```(sh|sql)\n([\s\S]*?)^```$/gm)];
  expect(blocks.map(([, language]) => language)).toEqual(['sh', 'sh', 'sql', 'sh']);
  for (const [, language, text = ''] of blocks) {
    if (language === 'sql') {
      const db = database();
      db.exec(text);
      db.close();
      continue;
    }
    for (const line of text.replaceAll('\\\n', ' ').trim().split('\n')) {
      expect(await run(...at(line).split(/\s+/).slice(1)), line).toMatchObject({ exit: 0 });
    }
  }
  const dir = join(folder.path, 'triage');
  // What counts as which record is declared, and not found out.
  expect((await run('kind', 'list', '--dir', dir, '--json')).json).toMatchObject({
    kinds: [{ kind: 'refund', systemOfRecord: 'payments', mode: 'shared' }],
  });
  expect((await run('case', 'show', 'TICKET-6990', '--dir', dir, '--json')).json).toMatchObject({
    case: { epoch: 4 },
  });

  const db = database();
  const step = db.prepare('INSERT INTO ticket_steps (ticket, step, holdfast_token) VALUES (?, ?, ?)');
  step.run('TICKET-7001', 'called the customer', TOKEN);
  await run(
    'case',
    'take',
    'TICKET-7001',
    '--person',
    'ann',
    '--epoch',
    '1',
    '--reason',
    'it is urgent',
    '--dir',
    dir,
  );
  expect(() => step.run('TICKET-7001', 'too late', TOKEN)).toThrow(/HF002/);
  expect(db.prepare('SELECT count(*) AS steps FROM ticket_steps').get()).toEqual({ steps: 1 });
  db.close();
});
