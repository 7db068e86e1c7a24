import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { freePort, run, serve, temporaryFolder } from '../cli/support.js';

const PAGE = readFileSync('docs/guide/thin.md', 'utf8');
const EXAMPLES = join(import.meta.dirname, '../../examples/thin');

/** The configuration of the page, with the modules where they are. */
function pageConfig(): string {
  const [, yaml = ''] = /^```yaml\n([\s\S]*?)^```$/m.exec(PAGE) ?? [];
  return yaml
    .replace('./review.mjs', join(EXAMPLES, 'review.mjs'))
    .replace('./reader.mjs', join(EXAMPLES, 'reader.mjs'));
}

describe('the guide to thin contracts', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let running: { stop(): Promise<unknown> }[];

  beforeEach(() => {
    folder = temporaryFolder();
    running = [];
    const file = join(folder.path, 'desk.db');
    const desk = new Database(file);
    desk.exec('CREATE TABLE refunds (case_id TEXT PRIMARY KEY, payment TEXT, amount TEXT, currency TEXT)');
    desk.exec("INSERT INTO refunds VALUES ('CASE-7001', 'pay_B', '49.00', 'EUR')");
    desk.close();
    vi.stubEnv('DESK_DB', file);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await Promise.all(running.map((one) => one.stop()));
    folder.remove();
  });

  it('[R-191][R-192][R-195] works as it is written', async () => {
    const ports = { triage: await freePort(), billing: await freePort() };
    const urls = { triage: `http://127.0.0.1:${ports.triage}`, billing: `http://127.0.0.1:${ports.billing}` };
    const keys: Record<string, string> = {};
    const configOf = (name: 'triage' | 'billing') => {
      const peer = name === 'triage' ? 'billing' : 'triage';
      return `agent: ${name}
url: ${urls[name]}
ledger: ../ledger.db
listen: { port: ${ports[name]} }
log: { level: silent }
network: { loopback: ["127.0.0.1:${ports.triage}", "127.0.0.1:${ports.billing}"] }
peers: [{ url: "${urls[peer]}", key: ${keys[peer] ?? 'x'.repeat(43)}, contracts: [refund-review/1], skills: [review] }]
${pageConfig()}`;
    };
    const write = (name: 'triage' | 'billing') => {
      mkdirSync(join(folder.path, name), { recursive: true });
      writeFileSync(join(folder.path, name, 'holdfast.yaml'), configOf(name));
    };
    for (const name of ['triage', 'billing'] as const) {
      write(name);
      expect(await run('case', 'list', '--dir', join(folder.path, name))).toMatchObject({ exit: 0 });
      keys[name] = (await run('identity', '--dir', join(folder.path, name), '--json')).json.thumbprint;
    }
    for (const name of ['triage', 'billing'] as const) write(name);
    for (const name of ['triage', 'billing']) running.push(await serve(join(folder.path, name)));

    const triage = join(folder.path, 'triage');
    for (const id of ['CASE-7001', 'CASE-7002']) {
      const opened = await run('case', 'open', '--id', id, '--kind', 'review', '--dir', triage);
      expect(opened).toMatchObject({ exit: 0 });
    }
    const [, line = ''] = /^```sh\n(holdfast handoff send .*)\n```$/m.exec(PAGE) ?? [];
    const words = line
      .split(' ')
      .slice(1)
      .map((word) => (word === '.holdfast/triage' ? triage : word.replace(':4200', `:${ports.billing}`)));
    const missing = await run(...words.map((word) => (word === 'CASE-7001' ? 'CASE-7002' : word)), '--json');
    expect(missing).toMatchObject({ exit: 2, json: { error: { code: 'records_disagree' } } });
    const withFile = await run(...words, '--file', 'examples/refund/case.json', '--json');
    expect(withFile).toMatchObject({ exit: 2, json: { error: { code: 'usage' } } });
    const withEvidence = await run(...words, '--evidence', 'examples/refund/transcript.txt', '--json');
    expect(withEvidence).toMatchObject({ exit: 2, json: { error: { code: 'usage' } } });
    const sent = await run(...words);
    expect(sent.exit, sent.out).toBe(0);
    expect((await run('case', 'show', 'CASE-7001', '--dir', triage, '--json')).json).toMatchObject({
      case: { owner: urls.billing, epoch: 2 },
    });
  });

  it('refuses a thin contract in a kind with separate ledgers, with the key', async () => {
    const yaml = pageConfig().replace('system_of_record: desk', 'system_of_record: desk\n    mode: separate');
    writeFileSync(join(folder.path, 'holdfast.yaml'), `agent: triage\nurl: http://127.0.0.1:4100\n${yaml}`);
    for (const argv of [['config', 'check'], ['serve'], ['case', 'list']]) {
      const { exit, err } = await run(...argv, '--dir', folder.path);
      expect(exit, argv.join(' ')).toBe(2);
      expect(err).toContain('kinds.review.contracts');
    }
  });
});
