import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPostgresLedger } from '../../src/storage/index.js';
import { freePort } from '../cli/support.js';
import { type PostgresServer, startPostgres } from '../postgres/server.js';
import type { Verdict } from './judge.js';
import { Pair } from './pair.js';

const LANES = 8;
const LOAD_MS = 3_000;
const PROGRESS_MS = 40_000;

/** The address at which the nodes know their database, whichever server answers there. */
class Address {
  readonly #server: Server;
  readonly #open = new Set<Socket>();

  private constructor(
    readonly port: number,
    private target: number,
  ) {
    this.#server = createServer((near) => {
      const far = connect({ host: '127.0.0.1', port: this.target });
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#open.add(socket);
        socket.pipe(other);
        socket.on('error', () => other.destroy());
        socket.once('close', () => {
          this.#open.delete(socket);
          other.destroy();
        });
      }
    });
  }

  static async of(server: PostgresServer): Promise<Address> {
    const address = new Address(await freePort(), server.port);
    await new Promise<void>((resolve) => address.#server.listen(address.port, '127.0.0.1', resolve));
    return address;
  }

  pointTo(server: PostgresServer): void {
    this.target = server.port;
    for (const socket of this.#open) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#open) socket.destroy();
    await closed;
  }
}

export interface FailoverResult extends Verdict {
  /** What the old primary was asked to write after another had taken over, and wrote. */
  readonly writtenByOld: number;
}

async function entriesIn(server: PostgresServer): Promise<number> {
  const ledger = await openPostgresLedger({ url: server.url('ledger') });
  try {
    let entries = 0;
    for (const ref of await ledger.listAuditedCases('default'))
      entries += (await ledger.readAudit(ref)).length;
    return entries;
  } finally {
    await ledger.close();
  }
}

/** Two nodes under load on `primary`, at an address that can be led to another server. */
async function underLoad<T>(
  primary: PostgresServer,
  work: (run: { pair: Pair; address: Address; servers: PostgresServer[] }) => Promise<T>,
): Promise<T> {
  const servers = [primary];
  const url = new URL(await primary.createDatabase('ledger'));
  const address = await Address.of(primary);
  url.port = String(address.port);
  const open = () => openPostgresLedger({ url: url.href });
  let pair: Pair | null = null;
  try {
    await (await open()).close();
    pair = await Pair.make({ name: 'PostgreSQL', ledger: url.href, open, close: async () => {} });
    return await work({ pair, address, servers });
  } finally {
    await pair?.close();
    await address.close();
    for (const server of servers.reverse()) await server.remove();
  }
}

/** A synchronous standby takes over under load; then the old primary comes back, and the nodes are led to it. */
export async function synchronousFailover(): Promise<FailoverResult> {
  const primary = await startPostgres();
  return underLoad(primary, async ({ pair, address, servers }) => {
    const standby = await primary.standby({ synchronous: true });
    servers.push(standby);
    await pair.start();
    pair.triage.order({ load: LANES });
    await sleep(LOAD_MS);
    await primary.kill();
    await standby.promote();
    address.pointTo(standby);
    await sleep(LOAD_MS);
    await primary.start();
    // What would hold it back otherwise is the standby that left it, and not who it is.
    await primary.query('ALTER SYSTEM RESET synchronous_standby_names');
    await primary.query('SELECT pg_reload_conf()');
    const before = await entriesIn(primary);
    address.pointTo(primary);
    await sleep(LOAD_MS);
    address.pointTo(standby);
    const writtenByOld = (await entriesIn(primary)) - before;
    if (writtenByOld > 0) pair.told.violations.push(`the old primary took ${writtenByOld} audit entries`);
    for (const node of pair.nodes) {
      if (!node.alive) pair.told.violations.push(`${node.role} ended when its database changed`);
    }
    return { ...(await pair.settle()), writtenByOld };
  });
}

export interface RegressionResult {
  /** Cases whose acceptance was acknowledged and that the new primary does not hold as accepted. */
  readonly regressed: number;
  readonly quarantined: number;
  /** Acknowledged cases handed over after the takeover. */
  readonly after: number;
  readonly violations: readonly string[];
}

/** A standby that has received nothing for a while takes over: what it lacks of what was acknowledged must be closed, and the rest go on. */
export async function asynchronousFailover(): Promise<RegressionResult> {
  const primary = await startPostgres();
  return underLoad(primary, async ({ pair, address, servers }) => {
    // Once it has failed twice to follow, it does not try again before it is promoted.
    const standby = await primary.standby({ settings: { wal_retrieve_retry_interval: '10min' } });
    servers.push(standby);
    const { told, triage } = pair;
    await pair.start();
    triage.order({ load: LANES });
    await untilAccepted(told.accepted, 10);
    await cutOff(primary);
    await sleep(LOAD_MS / 3);
    await untilAccepted(told.accepted, told.accepted.size + 10);
    await primary.kill();
    // What is told until the address leads elsewhere was committed on the old one.
    await sleep(LOAD_MS / 10);
    const before = new Set(told.accepted);
    await standby.promote();
    address.pointTo(standby);
    await untilAccepted(told.accepted, before.size + 10);
    for (const node of pair.nodes) {
      if (!node.alive) told.violations.push(`${node.role} ended when its database changed`);
      await node.stop();
    }
    return {
      ...(await judgeRegression(standby, before, told.violations)),
      after: told.accepted.size - before.size,
    };
  });
}

/** Ends what its standby follows it by, until the standby comes back no more. */
async function cutOff(primary: PostgresServer): Promise<void> {
  for (let tries = 0, without = 0; without < 3; tries++) {
    if (tries === 50) throw new Error('the standby cannot be kept from following');
    const ended = await primary.query('SELECT pg_terminate_backend(pid) FROM pg_stat_replication');
    without = ended.length === 0 ? without + 1 : 0;
    await sleep(200);
  }
}

async function untilAccepted(accepted: ReadonlySet<string>, count: number): Promise<void> {
  const deadline = Date.now() + PROGRESS_MS;
  while (accepted.size < count) {
    if (Date.now() > deadline) throw new Error(`only ${accepted.size} of ${count} handovers were accepted`);
    await sleep(50);
  }
}

async function judgeRegression(
  server: PostgresServer,
  acknowledged: ReadonlySet<string>,
  violations: string[],
): Promise<Omit<RegressionResult, 'after'>> {
  const ledger = await openPostgresLedger({ url: server.url('ledger') });
  try {
    const closed = new Set((await ledger.listQuarantined('default')).map(({ ref }) => ref.caseId));
    let regressed = 0;
    for (const caseId of acknowledged) {
      const [row] = await ledger.findCases('default', caseId);
      if (row !== undefined && row.epoch >= 2) continue;
      regressed++;
      if (!closed.has(caseId))
        violations.push(`${caseId}: was acknowledged, is lost, and is not quarantined`);
    }
    if (regressed === 0) violations.push('nothing was lost, so the run says nothing');
    return { regressed, quarantined: closed.size, violations };
  } finally {
    await ledger.close();
  }
}
