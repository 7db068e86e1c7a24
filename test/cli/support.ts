import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { main } from '../../src/cli/index.js';
import { type LossyProxy, lossyProxy } from '../lossy-proxy.js';

const EXAMPLES = join(import.meta.dirname, '../../examples/refund');
export const CASE_FILE = join(EXAMPLES, 'case.json');
export const TRANSCRIPT = join(EXAMPLES, 'transcript.txt');
export const CONTRACT = 'refund-dispute/1';

export interface Ran {
  readonly exit: number;
  readonly out: string;
  readonly err: string;
  /** The one JSON document that `--json` promises. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents of many shapes
  readonly json: any;
}

interface Running {
  readonly done: Promise<Ran>;
  stop(): void;
}

/** Runs a command in this process, as its bin would. */
export function run(...argv: string[]): Promise<Ran> {
  return begin(argv).done;
}

/** The same with an environment. */
export function runWith({ env }: { env: Record<string, string> }, ...argv: string[]): Promise<Ran> {
  return begin(argv, () => {}, env).done;
}

function begin(
  argv: string[],
  onOut: (text: string) => void = () => {},
  env: Record<string, string> = {},
): Running {
  let out = '';
  let err = '';
  let stop = () => {};
  const stopped = new Promise<void>((resolve) => {
    stop = resolve;
  });
  const io = {
    out: (text: string) => {
      out += text;
      onOut(out);
    },
    err: (text: string) => {
      err += text;
    },
    env,
    color: false,
    untilStopped: () => stopped,
  };
  const done = main(argv, io).then((exit) => ({
    exit,
    out,
    err,
    get json() {
      return JSON.parse(out);
    },
  }));
  return { done, stop };
}

export async function serve(dir: string, ...more: string[]): Promise<{ port: number; stop(): Promise<Ran> }> {
  let listening: (port: number) => void = () => {};
  const up = new Promise<number>((resolve) => {
    listening = resolve;
  });
  const running = begin(['serve', '--dir', dir, '--json', ...more], (out) => listening(JSON.parse(out).port));
  const ended = running.done.then((ran) => Promise.reject(new Error(`serve ended: ${ran.err}`)));
  ended.catch(() => {});
  const port = await Promise.race([up, ended]);
  return {
    port,
    stop: () => {
      running.stop();
      return running.done;
    },
  };
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

export interface Agent {
  readonly dir: string;
  readonly url: string;
  readonly key: string;
  readonly port: number;
}

/** Makes an agent whose log is silent. */
export async function initAgent(root: string, name: string): Promise<Agent> {
  const dir = join(root, name);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const made = await run(
    'init',
    '--agent',
    name,
    '--dir',
    dir,
    '--url',
    url,
    '--ledger',
    '../ledger.db',
    '--json',
  );
  appendFileSync(join(dir, 'holdfast.yaml'), '\nlog:\n  level: silent\n');
  return { dir, url, port, key: made.json.thumbprint };
}

export async function introduce(agent: Agent, peer: Agent, key = peer.key): Promise<Ran> {
  return run(
    ...['peer', 'add', '--dir', agent.dir, '--url', peer.url, '--key', key],
    ...['--contract', CONTRACT, '--skill', 'billing', '--json'],
  );
}

/** Two agents on one ledger who know each other. */
export async function initPair(root: string): Promise<{ triage: Agent; billing: Agent }> {
  const triage = await initAgent(root, 'triage');
  const billing = await initAgent(root, 'billing');
  await introduce(triage, billing);
  await introduce(billing, triage);
  return { triage, billing };
}

/** Gives an agent a ledger in its own folder, and the kind the mode that goes with it. */
export function keepToItself({ dir }: Agent): void {
  const file = join(dir, 'holdfast.yaml');
  const text = readFileSync(file, 'utf8')
    .replace('ledger: ../ledger.db', 'ledger: ledger.db')
    .replace('system_of_record: payments', 'system_of_record: payments\n    mode: separate');
  writeFileSync(file, text);
}

/** So that the agent that opened a case may act, too: policy says who may start what. */
export function letOpenerAct(opener: Agent, ...agents: Agent[]): void {
  for (const { dir } of agents) {
    const file = join(dir, 'holdfast.yaml');
    const text = readFileSync(file, 'utf8');
    writeFileSync(file, text.replace('"*": [refund]', `"*": [refund]\n        "${opener.url}": [refund]`));
  }
}

/** Two agents who know each other, both running, with a line to billing that can lose what crosses it; triage has CASE-7001. */
export interface ServedPair {
  readonly triage: Agent;
  readonly billing: Agent;
  readonly proxy: LossyProxy;
  /** Runs a command for triage, as `--json`. */
  at(...argv: string[]): Promise<Ran>;
  /** Triage hands CASE-7001 to billing. */
  send(): Promise<Ran>;
  stopTriage(): Promise<Ran>;
  startTriage(): Promise<void>;
  /** Ends all of it, and leaves no file behind. */
  stop(): Promise<void>;
}

/** @param mode `separate` gives each agent a ledger of its own */
export async function servePair(mode: 'shared' | 'separate' = 'shared'): Promise<ServedPair> {
  const folder = temporaryFolder();
  const { triage, billing } = await initPair(folder.path);
  letOpenerAct(triage, triage, billing);
  if (mode === 'separate') for (const agent of [triage, billing]) keepToItself(agent);
  let sender = await serve(triage.dir);
  const receiver = await serve(billing.dir, '--port', '0');
  const proxy = await lossyProxy(billing.port, () => receiver.port);
  const at = (...argv: string[]) => run(...argv, '--dir', triage.dir, '--json');
  await at('case', 'open', CASE_FILE);
  if (mode === 'separate') {
    // Since its start it waits for what the other holds.
    const answered = async () => (await at('peer', 'answers')).json.peers[0]?.state === 'answered';
    for (const end = Date.now() + 15_000; !(await answered()); await sleep(50)) {
      if (Date.now() > end) throw new Error('the peer has not said what it holds');
    }
  }
  return {
    triage,
    billing,
    proxy,
    at,
    send: () =>
      at(
        ...['handoff', 'send', '--file', CASE_FILE, '--to', billing.url, '--contract', CONTRACT],
        ...['--evidence', TRANSCRIPT, '--redact'],
      ),
    stopTriage: () => sender.stop(),
    async startTriage() {
      sender = await serve(triage.dir);
    },
    async stop() {
      await Promise.all([sender.stop(), receiver.stop()]);
      proxy.close();
      folder.remove();
    },
  };
}
