import { describe, expect, it } from 'vitest';
import { EXIT_MEANINGS, exitCodeOf } from '../../src/cli/index.js';
import { ERROR_TABLE, type ErrorCode } from '../../src/core/index.js';
import { run } from './support.js';

/** Every command, found by walking the help texts from the top. */
async function allCommands(path: string[] = []): Promise<string[][]> {
  const { out, exit } = await run(...path, '--help');
  expect(exit).toBe(0);
  const listed = out.split('\nCommands:\n')[1]?.split('\n\n')[0] ?? '';
  const names = [...listed.matchAll(/^ {2}([a-z]+)/gm)]
    .map(([, name]) => name ?? '')
    .filter((name) => name !== 'help');
  if (names.length === 0) return [path];
  return (await Promise.all(names.map((name) => allCommands([...path, name])))).flat();
}

describe('the command', () => {
  it('has help with examples and --json everywhere, and --dir and --db where there is an agent and a ledger to it', async () => {
    const commands = await allCommands();
    expect(commands.map((path) => path.join(' ')).sort()).toEqual([
      'attention list',
      'attention resolve',
      'attention show',
      'audit compare',
      'audit export',
      'audit head',
      'audit show',
      'audit verify',
      'case close',
      'case list',
      'case note',
      'case open',
      'case reassign',
      'case return',
      'case show',
      'case take',
      'config check',
      'config explain',
      'db backup',
      'db doctor',
      'db migrate',
      'db restore',
      'db status',
      'demo triage',
      'effect list',
      'effect settle',
      'effect start',
      'errors',
      'evidence add',
      'evidence get',
      'evidence list',
      'evidence revoke',
      'fence apply',
      'fence check',
      'fence sql',
      'handoff accept',
      'handoff answer',
      'handoff escalate',
      'handoff list',
      'handoff pending',
      'handoff query',
      'handoff reject',
      'handoff resend',
      'handoff send',
      'handoff show',
      'handoff void',
      'identity',
      'init',
      'key list',
      'key prepare',
      'key rotate',
      'kind apply',
      'kind list',
      'peer add',
      'peer answers',
      'peer list',
      'peer waive',
      'push list',
      'push retry',
      'push show',
      'serve',
      'witness accept',
      'witness show',
      'work done',
      'work fail',
      'work list',
      'work show',
    ]);
    for (const path of commands) {
      const { out } = await run(...path, '--help');
      expect(out, path.join(' ')).toMatch(/--json/);
      expect(out, path.join(' ')).toContain(`Examples:\n  $ holdfast ${path.join(' ')}`);
      const noAgent = ['demo triage', 'errors', 'config explain'].includes(path.join(' '));
      expect(out.split('Examples:')[0]?.includes('--dir'), path.join(' ')).toBe(!noAgent);
      const noLedger =
        ['errors', 'config explain'].includes(path.join(' ')) ||
        [
          'config check',
          'identity',
          'init',
          'peer add',
          'peer list',
          'key list',
          'key prepare',
          'key rotate',
          'witness show',
        ].includes(path.join(' '));
      expect(out.split('Examples:')[0]?.includes('--db'), path.join(' ')).toBe(!noLedger);
    }
  });

  it('has an example in the help of each group, and marks what must be given', async () => {
    for (const group of [
      'audit',
      'case',
      'config',
      'db',
      'demo',
      'effect',
      'evidence',
      'handoff',
      'kind',
      'peer',
      'work',
    ])
      expect((await run(group, '--help')).out).toContain(`Example:\n  $ holdfast ${group} `);
    expect((await run('handoff', 'send', '--help')).out).toMatch(/--contract <id> .*\(required\)/);
  });

  it('says what each variant of the demo is', async () => {
    const { out } = await run('demo', 'triage', '--help');
    expect(out).toMatch(/^V2 +billing's answer is lost, and the same bytes are sent again$/m);
  });

  it('prints its version, and without a command how it is used', async () => {
    expect((await run('--version')).out).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(await run()).toMatchObject({ exit: 2, out: '' });
  });

  it('explains the configuration, whole or in part', async () => {
    const whole = await run('config', 'explain', '--json');
    const part = await run('config', 'explain', 'listen', '--json');
    expect(whole.json.keys.length).toBeGreaterThan(part.json.keys.length);
    expect(part.json.keys.map(({ path }: { path: string }) => path)).toEqual(['listen.host', 'listen.port']);
    expect(await run('config', 'explain', 'listn')).toMatchObject({
      exit: 2,
      err: expect.stringMatching(/no key listn in the configuration; did you mean listen\?.*\[usage\]/),
    });
    expect((await run('config', 'explain')).out).toContain('listen.port  (integer; default 4100)');
  });

  it('lists every error code with its status', async () => {
    const { json } = await run('errors', '--json');
    expect(json.errors.map(({ code }: { code: string }) => code)).toEqual(Object.keys(ERROR_TABLE));
    expect(json.exits).toEqual(EXIT_MEANINGS);
    expect((await run('errors')).out).toMatch(/^epoch_stale +rejection +never +sender +3 /m);
  });

  it('keeps one status for each sort of failure', () => {
    const exits = (codes: ErrorCode[]) => codes.map((code) => exitCodeOf(code));
    expect(exits(['epoch_stale', 'epoch_ahead', 'not_owner'])).toEqual([3, 3, 3]);
    expect(exits(['schema_newer', 'port_taken', 'audit_broken', 'internal'])).toEqual([4, 8, 11, 1]);
    expect(exits(['peer_unreachable', 'peer_key_mismatch', 'peer_incompatible', 'unauthenticated'])).toEqual([
      5, 5, 5, 5,
    ]);
    expect(exits(['cap_exceeded', 'operation_prohibited', 'offer_open', 'case_unknown'])).toEqual([
      9, 9, 9, 9,
    ]);
    expect(exits(['busy', 'ledger_unavailable', 'outcome_unknown'])).toEqual([10, 10, 7]);
    expect(
      exits(['usage', 'config_invalid', 'case_file_invalid', 'contract_missing', 'fact_missing']),
    ).toEqual([2, 2, 2, 2, 2]);
    for (const code of Object.keys(ERROR_TABLE) as ErrorCode[])
      expect(EXIT_MEANINGS[exitCodeOf(code)]).toBeTruthy();
  });
});
