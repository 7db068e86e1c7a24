import { connect, type Socket } from 'node:net';

export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/** One HTTP/1.1 request as bytes, made beforehand so that sending it costs the load generator next to nothing. */
export function requestBytes(url: string, headers: Readonly<Record<string, string>>, body: string): Buffer {
  const { host, pathname, search } = new URL(url);
  const head = Object.entries({ host, 'content-length': String(Buffer.byteLength(body)), ...headers });
  const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return Buffer.from(`POST ${pathname}${search} HTTP/1.1\r\n${lines}\r\n${body}`);
}

/** One keep-alive connection with one request under way at a time: a general client would cost as much as what is measured. */
export class Connection {
  readonly #host: string;
  readonly #port: number;
  #socket: Socket | null = null;
  #received: Buffer[] = [];
  #answered: ((answer: HttpAnswer) => void) | null = null;
  #failed: ((error: Error) => void) | null = null;

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.#host = hostname;
    this.#port = Number(port);
  }

  send(request: Buffer): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      this.#answered = resolve;
      this.#failed = reject;
      this.#received = [];
      this.#open().write(request);
    });
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  #open(): Socket {
    if (this.#socket !== null) return this.#socket;
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true });
    socket.setTimeout(60_000, () => socket.destroy(new Error('no answer within 60 s')));
    socket.on('data', (bytes: Buffer) => this.#read(bytes));
    socket.on('error', (error) => this.#failed?.(error));
    socket.on('close', () => {
      if (this.#socket === socket) this.#socket = null;
      this.#failed?.(new Error('the connection was closed'));
    });
    this.#socket = socket;
    return socket;
  }

  #read(bytes: Buffer): void {
    this.#received.push(bytes);
    const all = this.#received.length === 1 ? bytes : Buffer.concat(this.#received);
    this.#received = [all];
    const end = all.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = all.toString('latin1', 0, end).toLowerCase();
    const body = bodyOf(head, all, end + 4);
    if (body === null) return;
    const answered = this.#answered;
    this.#answered = null;
    this.#failed = null;
    if (head.includes('\r\nconnection: close')) this.close();
    answered?.({ status: Number(head.slice(9, 12)), body });
  }
}

/** The body once it is there as a whole; chunks are left as they are, since only whether a word stands in it is looked at. */
function bodyOf(head: string, all: Buffer, from: number): string | null {
  const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
  if (length !== undefined) {
    const to = from + Number(length);
    return all.length < to ? null : all.toString('utf8', from, to);
  }
  return all.subarray(-5).toString('latin1') === '0\r\n\r\n' ? all.toString('utf8', from) : null;
}
