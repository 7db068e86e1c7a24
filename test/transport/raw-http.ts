import net from 'node:net';
import { expect } from 'vitest';
import type { TestNode } from './support.js';

/** Bytes as they are, past what any HTTP client would let through. */
export function raw(to: TestNode, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(to.port, '127.0.0.1', () => socket.write(bytes));
    let text = '';
    socket.setTimeout(2_000, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
}

/** One request that asks for no more than its answer. */
export const request = (line: string, ...headers: string[]) =>
  [line, ...headers, 'Connection: close', '', ''].join('\r\n');

/** Every error is JSON, never a page. */
export function expectJson(answer: string, status: number): void {
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answer.toLowerCase()).toMatch(/content-type: application\/(a2a\+)?json/);
  expect(() => JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).not.toThrow();
}
