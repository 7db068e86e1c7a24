import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPostgresLedger } from '../../src/storage/index.js';
import { freePort } from '../cli/support.js';
import { type PostgresServer, startPostgres } from '../postgres/server.js';
import type { Verdict } from './judge.js';
import { Pair } from './pair.js';

const LANES = 8;
const LOAD_MS = 3_000;

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

/** A synchronous standby takes over under load; then the old primary comes back, and the nodes are led to it. */
export async function synchronousFailover(): Promise<FailoverResult> {
  const primary = await startPostgres();
  const servers = [primary];
  const url = new URL(await primary.createDatabase('ledger'));
  const address = await Address.of(primary);
  url.port = String(address.port);
  const open = () => openPostgresLedger({ url: url.href });
  let pair: Pair | null = null;
  try {
    await (await open()).close();
    const standby = await primary.standby({ synchronous: true });
    servers.push(standby);
    pair = await Pair.make({ name: 'PostgreSQL', ledger: url.href, open, close: async () => {} });
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
  } finally {
    await pair?.close();
    await address.close();
    for (const server of servers.reverse()) await server.remove();
  }
}
