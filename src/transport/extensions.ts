import type { IncomingMessage } from 'node:http';
import type { ServerCallContext } from '@a2a-js/sdk/server';
import { EXTENSION_URI } from '../protocol/index.js';

const EXTENSIONS_HEADER = 'a2a-extensions';

export function requestedExtensions(request: IncomingMessage): string[] {
  const header = request.headers[EXTENSIONS_HEADER];
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text
    .split(',')
    .map((uri) => uri.trim())
    .filter((uri) => uri !== '');
}

/** Ours is the one extension that can be activated; any other is ignored, as the protocol wants. */
export function activate(context: ServerCallContext): void {
  if (context.requestedExtensions?.includes(EXTENSION_URI)) context.addActivatedExtension(EXTENSION_URI);
}

export function echoed(context: ServerCallContext): Record<string, string> {
  const activated = context.activatedExtensions ?? [];
  return activated.length === 0 ? {} : { [EXTENSIONS_HEADER]: activated.join(', ') };
}
