import { describe, expect, it } from 'vitest';
import { isHoldfastError } from '../../src/core/index.js';
import {
  checkConfig,
  formatDuration,
  formatSize,
  listConfigKeys,
  parseConfig,
  parseDuration,
  parseSize,
} from '../../src/node/index.js';

const MINIMAL = 'agent: triage\nurl: http://127.0.0.1:4100\n';

function problemsOf(yaml: string): Record<string, string> {
  try {
    parseConfig(yaml);
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== 'config_invalid') throw error;
    for (const { path, problem } of error.fields)
      expect(error.message).toContain(`${path} ${problem}`.trim());
    return Object.fromEntries(error.fields.map(({ path, problem }) => [path, problem]));
  }
  throw new Error('the configuration was taken');
}

describe('configuration', () => {
  it('fills in every default', () => {
    const config = parseConfig(MINIMAL);
    expect(config).toMatchObject({
      tenant: 'default',
      vendor: 'holdfast',
      ledger: 'ledger.db',
      listen: { host: '127.0.0.1', port: 4100 },
      contracts: [],
      receives: [],
      peers: [],
      kinds: {},
      network: { loopback: [], hosts: [], ports: [443] },
      evidence: { dir: 'evidence', url_ttl: 86_400_000 },
      limits: {
        max_body: 1_048_576,
        max_envelope: 65_536,
        max_depth: 32,
        max_nodes: 10_000,
        peer_timeout: 30_000,
      },
      log: { level: 'info' },
    });
  });

  it('takes a file or a PostgreSQL database for the ledger, and how safe it must be', () => {
    const yaml = `${MINIMAL}ledger: postgres://ann:s3cret@db/name\ndurability: strict\npostgres:\n  lock_timeout: 1s\n`;
    expect(parseConfig(yaml)).toMatchObject({
      ledger: 'postgres://ann:s3cret@db/name',
      durability: 'strict',
      postgres: { connections: 10, lock_timeout: 1000, statement_timeout: 10_000 },
    });
    expect(parseConfig(MINIMAL)).toMatchObject({ durability: 'standard' });
    expect(problemsOf(`${MINIMAL}ledger: mysql://ann:s3cret@db/name\n`)).toEqual({
      ledger:
        'must be a file path, or the URL of a PostgreSQL database such as postgres://user@host/name (line 3)',
    });
    expect(problemsOf(`${MINIMAL}ledger: postgres://ann:s3cret@db\n`)).toEqual({
      ledger: 'must name a database, such as postgres://user@host/name (line 3)',
    });
    expect(problemsOf(`${MINIMAL}durability: maybe\n`)).toEqual({
      durability: 'must be `standard` or `strict` (line 3)',
    });
    expect(Object.keys(problemsOf(`${MINIMAL}postgres:\n  connections: 0\n  pool: 3\n`))).toEqual([
      'postgres.connections',
      'postgres.pool',
    ]);
  });

  it('names an unknown key, its line and the nearest known one', () => {
    expect(problemsOf(`${MINIMAL}lisen:\n  port: 1\n`)).toEqual({
      lisen: 'is not a known key; did you mean listen? (line 3)',
    });
    expect(problemsOf(`${MINIMAL}listen:\n  prot: 1\n`)).toEqual({
      'listen.prot': 'is not a known key; did you mean port? (line 4)',
    });
    expect(problemsOf(`${MINIMAL}xyzzy: 1\n`)).toEqual({ xyzzy: 'is not a known key (line 3)' });
  });

  it('names every wrong value at once', () => {
    const problems = problemsOf(
      [
        'agent: 7',
        'listen: {port: 99999}',
        'peers:',
        '  - url: http://example.com',
        '    key: short',
        'limits:',
        '  max_body: 3',
        '  peer_timeout: 30',
        'kinds:',
        '  refund:',
        '    system_of_record: payments',
        '    mode: coordinated',
        '    policy: {caps: {refund: 100.00}}',
      ].join('\n'),
    );
    expect(Object.keys(problems)).toEqual([
      'agent',
      'url',
      'listen.port',
      'peers[0].url',
      'peers[0].key',
      'kinds.refund.mode',
      'kinds.refund.policy.caps.refund',
      'limits.max_body',
      'limits.peer_timeout',
    ]);
    expect(problems.url).toBe('is missing');
    expect(problems['limits.peer_timeout']).toBe(
      'must be a duration with its unit, such as 30s, 5m or 24h (line 8)',
    );
    expect(problems['kinds.refund.policy.caps.refund']).toContain('such as 100.00 EUR');
  });

  it('refuses what is no YAML, is empty, repeats a key or uses an alias', () => {
    expect(problemsOf('agent: [')['']).toMatch(/^is not YAML/);
    expect(problemsOf('')).toEqual({ agent: 'is missing', url: 'is missing' });
    expect(problemsOf(`${MINIMAL}agent: other\n`)['']).toMatch(/unique.*line 3/);
    expect(problemsOf(`agent: &a triage\nurl: *a\n`)['']).toMatch(/alias/);
  });

  it('takes plain http only on this machine', () => {
    expect(problemsOf('agent: a\nurl: http://agents.example.com\n').url).toContain('must be an https URL');
    expect(parseConfig('agent: a\nurl: https://agents.example.com/\n').url).toBe(
      'https://agents.example.com',
    );
    expect(parseConfig('agent: a\nurl: http://localhost:4100\n').url).toBe('http://localhost:4100');
  });

  it('finds what no single key shows', () => {
    const peer = `  - {url: "http://127.0.0.1:4100", key: ${'a'.repeat(43)}}\n`;
    expect(problemsOf(`${MINIMAL}peers:\n${peer}`)['peers[0].url']).toBe('is this agent itself');
    expect(problemsOf(`${MINIMAL}limits: {max_envelope: 2MiB}\n`)).toHaveProperty(['limits.max_envelope']);
  });

  it('[R-001][R-127] reads kinds with their system of record, policy and limits', () => {
    const { kinds } = parseConfig(
      `${MINIMAL}kinds:\n  refund:\n    system_of_record: payments\n    contracts: [refund-dispute/1]\n    policy:\n` +
        '      caps: {refund: 100.00 EUR}\n      prohibitions: [publish]\n      operations: {"*": [refund]}\n' +
        '    limits: {max_hops: 3, accept_within: 30m}\n',
    );
    expect(kinds.refund).toEqual({
      system_of_record: 'payments',
      mode: 'shared',
      waiting: 'blocking',
      contracts: ['refund-dispute/1'],
      policy: {
        caps: { refund: { amount: '100.00', currency: 'EUR' } },
        prohibitions: ['publish'],
        operations: { '*': ['refund'] },
      },
      limits: { max_hops: 3, max_tasks: 5, accept_within: 1_800_000, effect_limit: 300_000 },
    });
    expect(problemsOf(`${MINIMAL}kinds:\n  refund: {}\n`)).toEqual({
      'kinds.refund.system_of_record': 'is missing',
    });
  });

  it('checks an object the same way', () => {
    expect(checkConfig({ agent: 'a', url: 'http://127.0.0.1:1' }).listen.port).toBe(4100);
    expect(() => checkConfig({ agent: 'a', url: 'http://127.0.0.1:1', colour: 1 })).toThrow(
      /colour is not a known key/,
    );
  });

  it('explains every key that it takes', () => {
    const keys = listConfigKeys();
    expect(keys.length).toBeGreaterThan(35);
    expect(new Set(keys.map(({ path }) => path)).size).toBe(keys.length);
    expect(keys.filter((key) => key.default === null).map(({ path }) => path)).toEqual([
      'agent',
      'url',
      'peers[].url',
      'peers[].key',
      'kinds.<name>.system_of_record',
    ]);
    for (const { meaning } of keys) expect(meaning).toMatch(/^[A-Z`].*\.$/);
  });
});

describe('durations and sizes', () => {
  it('are read and written with their unit', () => {
    expect(['250ms', '30s', '5m', '24h', '7d'].map(parseDuration)).toEqual([
      250, 30_000, 300_000, 86_400_000, 604_800_000,
    ]);
    expect(['30', '1.5h', '-1s', '5 m', ''].map(parseDuration)).toEqual([null, null, null, null, null]);
    expect(['1B', '64KiB', '1MiB', '1GiB', '1KB'].map(parseSize)).toEqual([
      1,
      65_536,
      1_048_576,
      1_073_741_824,
      null,
    ]);
    expect([250, 90_000, 86_400_000, 172_800_000].map(formatDuration)).toEqual(['250ms', '90s', '24h', '2d']);
    expect([100, 65_536].map(formatSize)).toEqual(['100B', '64KiB']);
  });
});
