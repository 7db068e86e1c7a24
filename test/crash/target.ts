import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The business system: counts what really happened, by idempotency key, and forgets nothing when a node dies. */
export interface Target {
  readonly url: string;
  readonly calls: ReadonlyMap<string, number>;
  close(): Promise<void>;
}

export async function startTarget(): Promise<Target> {
  const calls = new Map<string, number>();
  const server: Server = createServer((request, response) => {
    const key = String(request.headers['idempotency-key']);
    request.resume().on('end', () => {
      if (request.method === 'POST') calls.set(key, (calls.get(key) ?? 0) + 1);
      response.end(JSON.stringify({ calls: calls.get(key) ?? 0 }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
