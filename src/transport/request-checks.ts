import type { IncomingMessage } from 'node:http';
import { VersionNotSupportedError } from '@a2a-js/sdk/errors';
import { HoldfastError } from '../core/index.js';
import { A2A_VERSION } from '../protocol/index.js';

const MAX_HEADERS = 100;
/** Headers whose second copy a proxy before us may have read instead of the first. */
const SINGLE = ['host', 'authorization', 'content-type', 'content-length', 'a2a-version'];

export interface Target {
  /** Decoded, absolute, without a trace of encoding left. */
  readonly path: string;
  readonly query: URLSearchParams;
}

function malformed(problem: string): HoldfastError {
  return new HoldfastError('message_invalid', `The HTTP request is malformed: ${problem}.`);
}

/**
 * What Node's parser lets pass and an application must not.
 *
 * @throws message_invalid
 */
export function checkRequest(request: IncomingMessage, allowedHosts: ReadonlySet<string>): Target {
  const names = request.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  if (names.length > MAX_HEADERS) throw malformed('too many headers');
  const doubled = SINGLE.find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (doubled !== undefined) throw malformed(`${doubled} is given twice`);
  const host = request.headers.host?.toLowerCase();
  if (host === undefined || !allowedHosts.has(host)) throw malformed('the Host is not one of this agent');
  return readTarget(request.url ?? '');
}

/** One reading of a path: what is routed, what is checked and what the SDK sees are the same characters. */
function readTarget(target: string): Target {
  if (!target.startsWith('/')) throw malformed('the target is not a path');
  const mark = target.indexOf('?');
  const raw = mark === -1 ? target : target.slice(0, mark);
  let path: string;
  try {
    path = decodeURIComponent(raw);
  } catch {
    throw malformed('the path is not well encoded');
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u0020\u007f\\%?#]|\/\/|\/\.{1,2}(?:\/|$)/.test(path))
    throw malformed('the path is ambiguous');
  return { path, query: new URLSearchParams(mark === -1 ? '' : target.slice(mark + 1)) };
}

/** The protocol version by header, or by query where there is none; patches do not count. @throws VersionNotSupportedError */
export function checkVersion(request: IncomingMessage, query: URLSearchParams): void {
  const header = request.headers['a2a-version'];
  const asked = (typeof header === 'string' ? header.trim() : '') || query.get('A2A-Version')?.trim() || '';
  if (/^1\.0(?:\.\d{1,9})?$/.test(asked)) return;
  throw new VersionNotSupportedError(
    asked === ''
      ? `No A2A-Version was given, which means 0.3; this agent speaks ${A2A_VERSION}.`
      : `This agent speaks A2A ${A2A_VERSION}.`,
  );
}
