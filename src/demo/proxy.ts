import { createServer, type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http';
import { envelopeMediaType } from '../protocol/index.js';
import { listenOnLoopback, readBody, stopServer } from './http.js';

/** One request and its answer as they crossed. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  /** Head and body, as the sender of each wrote them. */
  readonly request: Buffer;
  readonly response: Buffer;
  readonly authorization: string | null;
  readonly fate: 'answered' | 'reply_dropped';
}

/** `request`: not yet at the server. `reply`: the server has answered, the client does not know yet. */
export type Moment = 'request' | 'reply';

/** What is held: a request, or the answer to it. */
export interface Crossing {
  readonly method: string;
  readonly path: string;
  /** Whether the request brings an offer. */
  readonly isOffer: boolean;
  /** Whether the request tells of a start, and asks what is held of the time before. */
  readonly isAnnouncement: boolean;
}

/**
 * Stands at a node's public URL and keeps every byte that crosses in both directions. On demand it holds a message while the ledger
 * is looked at, or loses a reply after the server has committed.
 */
export class RecordingProxy {
  readonly #server = createServer((request, response) => void this.#relay(request, response));
  readonly #exchanges: Exchange[] = [];
  readonly #redirects = new Map<string, string>();
  #url = '';
  #targetPort = 0;
  #loseNextReply = false;
  #recording = true;
  #cut = false;
  /** Called while a message is held, before it goes on. */
  onMoment: ((moment: Moment, message: Crossing) => Promise<void>) | null = null;
  /** Called before that for every message, to look and do nothing; it is told what crosses. */
  onCrossing: ((what: string) => Promise<void>) | null = null;

  get url(): string {
    return this.#url;
  }

  async start(): Promise<void> {
    this.#url = `http://127.0.0.1:${await listenOnLoopback(this.#server)}`;
  }

  forwardTo(port: number): void {
    this.#targetPort = port;
  }

  exchanges(): readonly Exchange[] {
    return this.#exchanges;
  }

  /** The next POST is answered by the server, and the answer never reaches the client. */
  loseNextReply(): void {
    this.#loseNextReply = true;
  }

  /** What is under way breaks off, and nothing gets through until the line is mended. */
  cut(): void {
    this.#cut = true;
    this.#server.closeAllConnections();
  }

  mend(): void {
    this.#cut = false;
  }

  /** GETs of this path are answered with a redirect, without asking the server. */
  redirect(path: string, location: string): void {
    this.#redirects.set(path, location);
  }

  stopRecording(): void {
    this.#recording = false;
    this.#exchanges.length = 0;
  }

  stop(): Promise<void> {
    return stopServer(this.#server);
  }

  async #relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#cut) return void response.destroy();
    const method = request.method ?? 'GET';
    const path = request.url ?? '/';
    const lose = method === 'POST' && this.#loseNextReply;
    if (lose) this.#loseNextReply = false;
    try {
      const body = await readBody(request);
      const sent = Buffer.concat([headOf(`${method} ${path}`, request.rawHeaders), body]);
      const keep = (answer: Buffer, fate: Exchange['fate']) => {
        if (!this.#recording) return;
        const authorization = request.headers.authorization ?? null;
        this.#exchanges.push({ method, path, request: sent, response: answer, authorization, fate });
      };
      const location = this.#redirects.get(path);
      if (location !== undefined) {
        response.writeHead(302, { location }).end();
        keep(Buffer.from(`302 ${location}`), 'answered');
        return;
      }
      const says = (what: string) => method === 'POST' && body.includes(what);
      const isOffer = says(envelopeMediaType(2));
      const crossing = { method, path, isOffer, isAnnouncement: !isOffer && says('"ledger.announce"') };
      const hold = async (moment: Moment) => {
        await this.onCrossing?.(`${moment} of ${method} ${path}`);
        await this.onMoment?.(moment, crossing);
      };
      await hold('request');
      const answer = await this.#ask(request, body);
      const chunks: Buffer[] = [headOf(String(answer.statusCode), answer.rawHeaders)];
      if (lose) {
        chunks.push(await readBody(answer));
        keep(Buffer.concat(chunks), 'reply_dropped');
        response.destroy();
        return;
      }
      await hold('reply');
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      for await (const chunk of answer) {
        if (this.#recording) chunks.push(chunk as Buffer);
        response.write(chunk);
      }
      response.end();
      keep(Buffer.concat(chunks), 'answered');
    } catch {
      // A side went away, as it would without a proxy: the other side sees a broken connection.
      response.destroy();
    }
  }

  #ask(request: IncomingMessage, body: Buffer): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const onward = openRequest(
        {
          host: '127.0.0.1',
          port: this.#targetPort,
          method: request.method,
          path: request.url,
          headers: { ...request.headers, connection: 'close' },
        },
        resolve,
      );
      onward.on('error', reject);
      onward.end(body);
    });
  }
}

function headOf(first: string, rawHeaders: readonly string[]): Buffer {
  const lines = [first];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) lines.push(`${rawHeaders[i]}: ${rawHeaders[i + 1]}`);
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}
