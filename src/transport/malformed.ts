import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { HoldfastError } from '../core/index.js';
import { toRestBody, toWireError, type WireError } from './errors.js';

/** What is said of a request that HTTP itself does not allow. */
export function malformed(http: number): WireError {
  return { ...toWireError(new HoldfastError('message_invalid', 'The HTTP request is malformed.')), http };
}

/** Headers that never became a request: answered by hand, because there is nothing to answer with. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return;
  const status = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }[error.code ?? ''] ?? 400;
  const body = JSON.stringify(toRestBody(malformed(status)));
  socket.write(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
  // Ending alone would leave it half open for as long as the other side likes.
  socket.destroySoon();
}
