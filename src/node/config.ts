import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { type FieldError, HoldfastError, type Limits } from '../core/index.js';
import type { KindDefinition } from '../ledger/index.js';
import type { Peer } from '../trust/index.js';
import { knownKeysAt } from './config-explain.js';
import { type Config, configSchema } from './config-schema.js';
import { nearestOf } from './nearest.js';

export const CONFIG_FILE = 'holdfast.yaml';

/**
 * Reads and checks the configuration of the agent in `dir`.
 * @throws config_invalid naming every key that is wrong, with its line
 */
export function readConfig(dir: string): Config {
  const file = join(dir, CONFIG_FILE);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new HoldfastError(
      'config_invalid',
      `There is no readable ${CONFIG_FILE} in ${dir}. Make one with \`holdfast init\`, or name the folder with --dir.`,
      { cause },
    );
  }
  return parseConfig(text);
}

/** @throws config_invalid naming every key that is wrong, with its line */
export function parseConfig(yaml: string): Config {
  const lines = new LineCounter();
  const document = parseDocument(yaml, { lineCounter: lines, version: '1.2', merge: false });
  const broken = document.errors[0];
  if (broken) {
    const line = lines.linePos(broken.pos[0]).line;
    const problem = broken.message.split('\n')[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? '';
    throw invalid([{ path: '', problem: `is not YAML: ${problem}`, line }]);
  }
  const lineOf = (path: readonly PropertyKey[]) => {
    const parent = path.length > 1 ? document.getIn(path.slice(0, -1), true) : document.contents;
    const last = path.at(-1);
    const pair = isMap(parent)
      ? parent.items.find(({ key }) => isScalar(key) && key.value === last)
      : undefined;
    const node = isScalar(pair?.key) ? pair.key : document.getIn(path, true);
    const start = (node as { range?: [number, number, number] } | undefined)?.range?.[0];
    return start === undefined ? undefined : lines.linePos(start).line;
  };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 0 });
  } catch {
    throw invalid([{ path: '', problem: 'uses a YAML alias (*name); write the value out' }]);
  }
  return checkConfig(value ?? {}, lineOf);
}

/** Checks a configuration given as an object. @throws config_invalid naming every key that is wrong */
export function checkConfig(
  value: unknown,
  lineOf: (path: readonly PropertyKey[]) => number | undefined = () => undefined,
): Config {
  const result = configSchema.safeParse(value, { reportInput: true });
  if (!result.success) {
    const problems = result.error.issues.flatMap(problemsOf);
    throw invalid(problems.map(({ path, problem }) => ({ path: spell(path), problem, line: lineOf(path) })));
  }
  const config = result.data;
  const problems = crossProblems(config);
  if (problems.length > 0) throw invalid(problems);
  return config;
}

/** What no single key can show. */
function crossProblems(config: Config): FieldError[] {
  const problems: FieldError[] = [];
  if (config.limits.max_envelope > config.limits.max_body) {
    problems.push({ path: 'limits.max_envelope', problem: 'is larger than limits.max_body' });
  }
  const seen = new Set<string>([config.url]);
  config.peers.forEach(({ url }, index) => {
    if (seen.has(url)) {
      const problem = url === config.url ? 'is this agent itself' : `is configured twice (${url})`;
      problems.push({ path: `peers[${index}].url`, problem });
    }
    seen.add(url);
  });
  return problems;
}

interface Problem {
  readonly path: readonly PropertyKey[];
  readonly problem: string;
}

function problemsOf(issue: z.core.$ZodIssue): Problem[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...issue.path, key], problem: unknownKey(issue.path, key) }));
  }
  if (issue.code === 'invalid_key') {
    const problem = issue.issues[0]?.message ?? 'is not a valid name';
    return [{ path: issue.path, problem: `as a key ${problem}` }];
  }
  if (issue.code === 'invalid_type' && issue.input === undefined) {
    return [{ path: issue.path, problem: 'is missing' }];
  }
  if (issue.code === 'invalid_type')
    return [
      {
        path: issue.path,
        problem: issue.message.startsWith('Invalid') ? `is not ${nounOf(issue.expected)}` : issue.message,
      },
    ];
  return [{ path: issue.path, problem: issue.message }];
}

function nounOf(expected: string): string {
  const nouns: Record<string, string> = {
    object: 'a section with keys',
    record: 'a section with keys',
    array: 'a list',
    boolean: 'true or false',
    string: 'text',
  };
  return nouns[expected] ?? `a ${expected}`;
}

function unknownKey(parent: readonly PropertyKey[], key: string): string {
  const known = knownKeysAt(parent) ?? [];
  const nearest = nearestOf(known, key);
  const hint = nearest === null ? '' : `; did you mean ${nearest}?`;
  return `is not a known key${hint}`;
}

function spell(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, step) =>
      typeof step === 'number' ? `${text}[${step}]` : text === '' ? String(step) : `${text}.${String(step)}`,
    '',
  );
}

function invalid(problems: readonly (FieldError & { line?: number | undefined })[]): HoldfastError {
  const fields = problems.map(({ path, problem, line }) => ({
    path,
    problem: line === undefined ? problem : `${problem} (line ${line})`,
  }));
  const listed = fields
    .map(({ path, problem }) => (path === '' ? `The file ${problem}` : `${path} ${problem}`))
    .join('; ');
  return new HoldfastError(
    'config_invalid',
    `${CONFIG_FILE}: ${listed}. \`holdfast config explain\` lists every key.`,
    { fields },
  );
}

export function limitsOf({ limits: l }: Config): Limits {
  return {
    maxBodyBytes: l.max_body,
    maxEnvelopeBytes: l.max_envelope,
    maxDepth: l.max_depth,
    maxNodes: l.max_nodes,
    maxStringBytes: l.max_string,
    maxKeyBytes: l.max_key,
    maxEvidenceBytes: l.max_evidence,
    evidenceTimeoutMs: l.evidence_timeout,
    maxPeerAnswerBytes: l.max_peer_answer,
    peerTimeoutMs: l.peer_timeout,
    peerRequestsPerMinute: l.peer_requests_per_minute,
  };
}

export function peersOf(config: Config): Peer[] {
  return config.peers.map(({ next_key, ...peer }) => ({
    ...peer,
    tenant: peer.tenant ?? config.tenant,
    ...(next_key === undefined ? {} : { nextKey: next_key }),
  }));
}

export function kindsOf(config: Config): KindDefinition[] {
  return Object.entries(config.kinds).map(
    ([kind, { system_of_record, mode, contracts, policy, limits }]) => ({
      kind,
      systemOfRecord: system_of_record,
      mode,
      contracts,
      policy,
      limits: {
        maxHops: limits.max_hops,
        maxTasks: limits.max_tasks,
        acceptWithinMs: limits.accept_within,
        effectLimitMs: limits.effect_limit,
      },
    }),
  );
}
