import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { main as holdfastCommand } from '../../src/cli/index.js';
import { freePort } from '../cli/support.js';

/** One agent, as its operator made it. */
export interface AgentFolder {
  readonly dir: string;
  readonly url: string;
  readonly thumbprint: string;
}

async function command(...argv: string[]): Promise<Record<string, string>> {
  const written: string[] = [];
  const io = {
    out: (text: string) => void written.push(text),
    err: (text: string) => void written.push(text),
    env: {},
    color: false,
    untilStopped: () => Promise.resolve(),
  };
  const code = await holdfastCommand([...argv, '--json'], io);
  if (code !== 0) throw new Error(`holdfast ${argv.join(' ')}: exit ${code} ${written.join('')}`);
  return JSON.parse(written.join(''));
}

/**
 * Agents on one ledger, each the others' peer, made with the command as a user would; `limits` are those of their kind. `edit` is what
 * else is written into the configuration of each.
 */
export async function makeAgents(
  names: readonly string[],
  ledger: string,
  limits: string,
  edit: (text: string, name: string) => string = (text) => text,
): Promise<{ list: AgentFolder[]; remove(): Promise<void> }> {
  const root = await mkdtemp(join(tmpdir(), 'holdfast-crash-'));
  const list: AgentFolder[] = [];
  for (const name of names) {
    const url = `http://127.0.0.1:${await freePort()}`;
    const dir = join(root, name);
    await command('init', '--agent', name, '--dir', dir, '--url', url, '--ledger', 'ledger.db');
    const file = join(dir, 'holdfast.yaml');
    const text = (await readFile(file, 'utf8'))
      .replace(/^ledger: .*$/m, `ledger: ${JSON.stringify(ledger)}`)
      .replace(/^ {4}policy:$/m, `    limits:\n      ${limits}\n    policy:`);
    await writeFile(file, edit(text, name));
    await appendFile(file, '\nlog:\n  level: silent\n');
    const { thumbprint = '' } = await command('identity', '--dir', dir);
    list.push({ dir, url, thumbprint });
  }
  for (const mine of list) {
    for (const theirs of list.filter((one) => one !== mine)) {
      const peer = ['--url', theirs.url, '--key', theirs.thumbprint];
      await command(
        'peer',
        'add',
        '--dir',
        mine.dir,
        ...peer,
        '--contract',
        'refund-dispute/1',
        '--skill',
        'billing',
      );
    }
  }
  return { list, remove: () => rm(root, { recursive: true, force: true }) };
}
