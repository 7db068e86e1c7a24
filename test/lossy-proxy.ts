import { createServer, request } from 'node:http';

export type Loss = 'nothing' | 'requests' | 'replies';

export interface LossyProxy {
  /** What is lost from now on. */
  lose(what: Loss): void;
  /** Bodies of the POSTs that were passed on, in order. */
  readonly passed: string[];
  close(): void;
}

/** Stands at a node's public URL and loses messages to it, or its replies. */
export function lossyProxy(port: number, target: () => number): Promise<LossyProxy> {
  let losing: Loss = 'nothing';
  const passed: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const post = incoming.method === 'POST';
    if (post && losing === 'requests') {
      incoming.socket.destroy();
      return;
    }
    const { method, url: path, headers } = incoming;
    const forwarded = request({ host: '127.0.0.1', port: target(), method, path, headers }, (answer) => {
      if (post && losing === 'replies') {
        answer.resume().once('end', () => incoming.socket.destroy());
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.once('error', () => outgoing.destroy());
      answer.pipe(outgoing);
    });
    forwarded.once('error', () => outgoing.destroy());
    const body: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => body.push(chunk));
    if (post) incoming.once('end', () => passed.push(Buffer.concat(body).toString('utf8')));
    incoming.pipe(forwarded);
  });
  return new Promise((resolve) => {
    server.listen(port, '127.0.0.1', () =>
      resolve({
        lose: (what) => {
          losing = what;
        },
        passed,
        close() {
          server.close();
          server.closeAllConnections();
        },
      }),
    );
  });
}
