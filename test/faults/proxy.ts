import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** What happens to one message, a request or its reply, on its way. */
export type Fault =
  /** It never arrives and the connection breaks: a lost message, exactly. */
  | { readonly do: 'drop' }
  /** It never arrives, and the connection stays as it is. */
  | { readonly do: 'half_open' }
  | { readonly do: 'delay'; readonly ms: number }
  /** Requests only: that many copies at once. The first answer that comes goes back. */
  | { readonly do: 'dup'; readonly times: number }
  /** Waits until it is let go, and so comes after what was sent later. */
  | { readonly do: 'hold'; readonly until: Promise<unknown> }
  /** Only its first bytes arrive, then the connection breaks. */
  | { readonly do: 'cut'; readonly bytes: number }
  /** One byte of its body arrives as another. */
  | { readonly do: 'corrupt'; readonly offset: number }
  | { readonly do: 'throttle'; readonly bytesPerSecond: number };

/** One request and its replies as they crossed; several where it was duplicated. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly request: Buffer;
  readonly replies: Buffer[];
}

export interface Fate {
  readonly request?: Fault;
  readonly reply?: Fault;
}

/** Says what happens to an exchange, by its request and its place among all of this link. */
export type Schedule = (exchange: Exchange, index: number) => Fate;

/** The same seed gives the same faults in the same places: each request and each reply has one of `faults` with this chance. */
export function randomly(next: () => number, chance: number, faults: readonly Fault[]): Schedule {
  const fault = () => (next() < chance ? (faults[Math.floor(next() * faults.length)] as Fault) : undefined);
  return () => {
    const [request, reply] = [fault(), fault()];
    return { ...(request && { request }), ...(reply && { reply }) };
  };
}

/**
 * One link that fails on demand. Each request is read whole before a byte of it goes on, and each reply before a byte of it goes back,
 * so that a lost request and a lost reply are exactly that.
 */
export class FaultProxy {
  readonly exchanges: Exchange[] = [];
  /** What happens to the exchanges to come; nothing at first. */
  schedule: Schedule = () => ({});
  readonly #server = createServer((socket) => void this.#serve(socket));
  readonly #open = new Set<Socket>();

  constructor(private readonly targetPort: number) {}

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
  }

  /** Breaks every connection there is; new ones are taken. */
  breakAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.breakAll();
    await closed;
  }

  /** Sends these bytes to the target once more, whenever that is, and reads the whole answer. */
  async replay(request: Buffer): Promise<Buffer> {
    const onward = this.#keep(connect({ host: '127.0.0.1', port: this.targetPort }));
    onward.write(request);
    return readAll(onward);
  }

  async #serve(client: Socket): Promise<void> {
    this.#keep(client);
    try {
      const request = await readRequest(client);
      if (request === null) return;
      const [method = '', path = ''] = request.toString('latin1').split(' ', 2);
      const exchange: Exchange = { method, path, request, replies: [] };
      const fate = this.schedule(exchange, this.exchanges.push(exchange) - 1);
      await this.#request(exchange, fate, client);
    } catch {
      // One side went away; the other sees a broken connection, as it would without a proxy.
      client.destroy();
    }
  }

  async #request(exchange: Exchange, { request: fault, reply }: Fate, client: Socket): Promise<void> {
    if (fault?.do === 'half_open') return;
    if (fault?.do === 'drop') return void client.destroy();
    const bytes = await onTheWay(exchange.request, fault);
    const copies = Array.from({ length: fault?.do === 'dup' ? fault.times : 1 }, async () => {
      const onward = this.#keep(connect({ host: '127.0.0.1', port: this.targetPort }));
      await write(onward, bytes, fault);
      if (fault?.do === 'cut') onward.destroySoon();
      const answer = await readAll(onward);
      exchange.replies.push(answer);
      return answer;
    });
    const [first] = await Promise.all([Promise.race(copies), Promise.allSettled(copies)]);
    if (fault?.do === 'cut') return void client.destroy();
    await answer(client, first, reply);
  }

  #keep(socket: Socket): Socket {
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    socket.on('error', () => socket.destroy());
    return socket;
  }
}

async function answer(client: Socket, reply: Buffer, fault?: Fault): Promise<void> {
  if (fault?.do === 'half_open') return;
  if (fault?.do === 'drop') return void client.destroy();
  await write(client, await onTheWay(reply, fault), fault);
  if (fault?.do === 'cut') client.destroySoon();
  else client.end();
}

async function onTheWay(bytes: Buffer, fault?: Fault): Promise<Buffer> {
  if (fault?.do === 'delay') await sleep(fault.ms);
  if (fault?.do === 'hold') await fault.until;
  if (fault?.do === 'cut') return bytes.subarray(0, fault.bytes);
  if (fault?.do !== 'corrupt') return bytes;
  const changed = Buffer.from(bytes);
  const body = bytes.indexOf('\r\n\r\n') + 4;
  const at = body + (fault.offset % Math.max(1, bytes.length - body));
  // Stays a printable character, so that it is the content that changes and not only its encoding.
  changed[at] = changed[at] === 0x78 ? 0x79 : 0x78;
  return changed;
}

async function write(socket: Socket, bytes: Buffer, fault?: Fault): Promise<void> {
  if (fault?.do !== 'throttle') return void socket.write(bytes);
  const step = Math.max(1, Math.floor(fault.bytesPerSecond / 20));
  for (let at = 0; at < bytes.length && !socket.destroyed; at += step) {
    socket.write(bytes.subarray(at, at + step));
    await sleep(50);
  }
}

/** One request, whole; it asks for no further one on its connection, so that its answer ends with it. Null where none came. */
async function readRequest(client: Socket): Promise<Buffer | null> {
  let bytes = Buffer.alloc(0);
  for await (const chunk of client.iterator({ destroyOnReturn: false })) {
    bytes = Buffer.concat([bytes, chunk as Buffer]);
    const end = bytes.indexOf('\r\n\r\n');
    if (end < 0) continue;
    const head = bytes.toString('latin1', 0, end);
    if (/^transfer-encoding:/im.test(head)) throw new Error('a request of unknown length');
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    if (bytes.length < end + 4 + length) continue;
    const alone = `${head.replace(/\r\n(connection|keep-alive):[^\r]*/gi, '')}\r\nconnection: close\r\n\r\n`;
    return Buffer.concat([Buffer.from(alone, 'latin1'), bytes.subarray(end + 4, end + 4 + length)]);
  }
  return null;
}

function readAll(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('end', () => resolve(Buffer.concat(chunks)));
    socket.once('close', () => reject(new Error('the connection broke')));
  });
}
