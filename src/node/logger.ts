import pino, { type DestinationStream } from 'pino';
import type { Logger } from '../core/index.js';

/** Names under which a credential could ever reach a log line; the value is removed at any of these depths. */
const SECRET_NAMES = [
  'authorization',
  'token',
  'secret',
  'sig',
  'signature',
  'cookie',
  'd',
  'password',
  'receipt',
];
const REDACTED = SECRET_NAMES.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]);
/** A signed URL is a credential for what it names. */
const SIGNED_QUERY = /([?&](?:sig|token|secret)=)[^&\s"]+/gi;
const BEARER = /\b(Bearer\s+)[A-Za-z0-9._~+/-]+=*/gi;

/** Logs JSON lines to stderr: ids, codes and counts. Credentials that slip in are removed. */
export function createLogger(options: {
  level: 'error' | 'warn' | 'info' | 'silent';
  agent: string;
  /** stderr where absent. */
  destination?: DestinationStream;
}): Logger {
  return pino(
    {
      level: options.level,
      base: { node: options.agent },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: REDACTED, censor: '[removed]' },
      serializers: { err: errorFields },
      hooks: {
        streamWrite: (line) => line.replace(SIGNED_QUERY, '$1[removed]').replace(BEARER, '$1[removed]'),
      },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

/** A stack helps the operator; a cause may hold a peer's words and stays out. */
function errorFields(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: 'not an error' };
  return {
    name: error.name,
    message: error.message,
    code: (error as { code?: unknown }).code,
    stack: error.stack,
  };
}
