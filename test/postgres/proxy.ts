import { connect, createServer, type Socket } from 'node:net';

/** A server in between, on 127.0.0.1, that counts what is asked and can lose an answer. */
export interface PostgresProxy {
  url: string;
  /** Round trips since the start: what the client asked and waits for. */
  readonly trips: number;
  /** The next answer to a request that holds this text is lost, with its connection, after the server has given it. */
  loseAnswerTo(text: string): void;
  /** The next request that holds this text is lost, with its connection, before the server has any of it. */
  loseRequest(text: string): void;
  /** Where connections go from now on; those that stand are cut. */
  lead(port: number): void;
  close(): Promise<void>;
}

/** Messages after which a client waits: Sync and Query. */
const WAITS = new Set(['S'.charCodeAt(0), 'Q'.charCodeAt(0)]);

export async function startProxy(url: string): Promise<PostgresProxy> {
  const target = new URL(url);
  const state = {
    port: Number(target.port),
    trips: 0,
    lost: null as string | null,
    cut: null as string | null,
  };
  const pairs = new Set<readonly [Socket, Socket]>();

  const server = createServer((client) => {
    const upstream = connect(state.port, '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    let losing = false;
    let first = true;
    const cut = () => {
      for (const socket of pair) socket.destroy();
      pairs.delete(pair);
    };
    for (const socket of pair) socket.on('error', cut).on('close', cut);
    client.on('data', (bytes) => {
      // The startup message has no type.
      if (first) first = false;
      else state.trips += countWaits(bytes);
      if (state.cut !== null && bytes.includes(state.cut)) {
        state.cut = null;
        cut();
        return;
      }
      if (state.lost !== null && bytes.includes(state.lost)) {
        losing = true;
        state.lost = null;
      }
      upstream.write(bytes);
    });
    upstream.on('data', (bytes) => {
      if (losing) cut();
      else client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  target.port = String((server.address() as { port: number }).port);

  const cutAll = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  return {
    url: target.href,
    get trips() {
      return state.trips;
    },
    loseAnswerTo(text) {
      state.lost = text;
    },
    loseRequest(text) {
      state.cut = text;
    },
    lead(port) {
      state.port = port;
      cutAll();
    },
    async close() {
      cutAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The client sends whole messages at a time, as long as they are small. */
function countWaits(bytes: Buffer): number {
  let waits = 0;
  for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readUInt32BE(at + 1)) {
    if (WAITS.has(bytes[at] ?? 0)) waits += 1;
  }
  return waits;
}
