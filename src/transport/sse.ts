import type { ServerResponse } from 'node:http';

/** How long a client may read nothing at all while something waits for it. */
const STALL_LIMIT_MS = 120_000;

function waitForRoom(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const limit = setTimeout(() => response.destroy(), STALL_LIMIT_MS);
    const settle = () => {
      clearTimeout(limit);
      response.removeListener('drain', settle);
      signal.removeEventListener('abort', settle);
      resolve();
    };
    response.once('drain', settle);
    signal.addEventListener('abort', settle, { once: true });
  });
}

/**
 * Writes a stream of server-sent events until it ends or the client is gone; then the source is told to stop.
 *
 * @throws what the source throws before its first event, while an ordinary error can still be answered
 */
export async function sendEvents<T>(
  response: ServerResponse,
  source: AsyncGenerator<T, void, undefined>,
  signal: AbortSignal,
  toData: (event: T) => object,
  toError: (error: unknown) => object,
): Promise<void> {
  const first = await source.next();
  if (signal.aborted) {
    await source.return();
    return;
  }
  // Set by itself, so that it can still be read once the headers are out.
  response.setHeader('content-type', 'text/event-stream');
  response.writeHead(200, {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
  try {
    for (let next = first; !next.done && !signal.aborted; next = await source.next()) {
      const room = response.write(`data: ${JSON.stringify(toData(next.value))}\n\n`);
      if (!room) await waitForRoom(response, signal);
    }
  } catch (error) {
    if (!signal.aborted) response.write(`event: error\ndata: ${JSON.stringify(toError(error))}\n\n`);
  } finally {
    await source.return();
    response.end();
  }
}
