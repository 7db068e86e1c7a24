import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { freePort, run, serve, temporaryFolder } from '../cli/support.js';

const GUIDE = join(import.meta.dirname, '../../docs/guide/two-agents.md');

interface Step {
  readonly argv: readonly string[];
  readonly exit: number;
}

/** The commands of the guide's shell blocks in order, with the exit status that a comment after them names. */
function readSteps(text: string): Step[] {
  const lines = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) =>
    block.replaceAll('\\\n', ' ').trim().split('\n'),
  );
  return lines.flatMap((line, index) => {
    if (!line.startsWith('holdfast ')) return [];
    const status = /^# exit status (\d+)$/.exec(lines[index + 1] ?? '')?.[1];
    const command = line.replace(/ 2> \S+ &$/, '');
    const words = [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '');
    return [{ argv: words.slice(1), exit: Number(status ?? 0) }];
  });
}

describe('the guide to two agents', () => {
  const folder = temporaryFolder();
  const running: { stop(): Promise<unknown> }[] = [];

  afterAll(async () => {
    await Promise.all(running.map((one) => one.stop()));
    folder.remove();
  });

  it('[R-061][R-075][R-076] works as it is written, command by command', async () => {
    const steps = readSteps(readFileSync(GUIDE, 'utf8'));
    expect(steps.length).toBeGreaterThan(18);
    const [triagePort, billingPort] = [await freePort(), await freePort()];
    const at = (name: string) => join(folder.path, name);
    const known: Record<string, () => Promise<string>> = {
      $TRIAGE_KEY: async () => (await run('identity', '--dir', at('triage'), '--json')).json.thumbprint,
      $BILLING_KEY: async () => (await run('identity', '--dir', at('billing'), '--json')).json.thumbprint,
      $WORK_ITEM: async () => (await run('work', 'list', '--dir', at('billing'), '--json')).json.work[0].id,
    };
    for (const { argv, exit } of steps) {
      const words: string[] = [];
      for (const word of argv) {
        const filled = (await known[word]?.()) ?? word;
        words.push(
          filled
            .replace('.holdfast', folder.path)
            .replace(':4100', `:${triagePort}`)
            .replace(':4200', `:${billingPort}`),
        );
      }
      if (words[0] === 'serve') running.push(await serve(words[2] ?? ''));
      else expect(await run(...words), argv.join(' ')).toMatchObject({ exit });
    }
    expect((await run('case', 'show', 'CASE-7001', '--dir', at('triage'), '--json')).json).toMatchObject({
      case: { status: 'closed', epoch: 2 },
      effects: [{ key: 'refund-pay_B', state: 'done', amount: { amount: '49.00', currency: 'EUR' } }],
      work: [{ state: 'done' }],
    });
  });
});
