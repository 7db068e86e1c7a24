import pino, { type DestinationStream } from 'pino';
import { isHoldfastError, type Logger } from '../core/index.js';

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
/** The password of a database URL. */
const PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@"]*:)[^\s/"]*@/gi;
const BEARER = /\b(Bearer\s+)[A-Za-z0-9._~+/-]+=*/gi;

/** Logs JSON lines to stderr: ids, codes and counts. Credentials that slip in are removed. */
export function createLogger(options: {
  level: 'error' | 'warn' | 'info' | 'silent';
  agent: string;
  /** Writes the messages of errors that are not Holdfast's own, too. */
  debug?: boolean;
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
      serializers: { err: (error: unknown) => describeError(error, options.debug ?? false) },
      hooks: {
        streamWrite: (line) =>
          line
            .replace(SIGNED_QUERY, '$1[removed]')
            .replace(BEARER, '$1[removed]')
            .replace(PASSWORD, '$1[removed]@'),
      },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}

/** Frames only: a stack begins with the message, which can have many lines. */
const FRAME = /^ {4}at .*(?::\d+:\d+|<anonymous>|native)\)?$/;
const CODE = /^[\w.-]{1,64}$/;
/** Of causes of causes; an error can be its own cause. */
const MAX_CAUSES = 3;

/**
 * Where an error comes from. Our own messages are made of names and numbers; any other may quote a fact of a case or a peer's words,
 * and is written only where somebody debugs.
 */
function describeError(error: unknown, messages: boolean, depth = 0): Record<string, unknown> {
  if (!(error instanceof Error))
    return { name: typeof error, ...(messages ? { message: String(error) } : {}) };
  const own = isHoldfastError(error);
  const { code, cause } = error as { code?: unknown; cause?: unknown };
  return {
    name: error.name,
    ...(CODE.test(String(code ?? '')) ? { code } : {}),
    ...(own && error.fields.length > 0 ? { fields: error.fields } : {}),
    ...(own || messages ? { message: error.message } : {}),
    stack: framesOf(error),
    ...(cause === undefined || depth === MAX_CAUSES
      ? {}
      : { cause: describeError(cause, messages, depth + 1) }),
  };
}

function framesOf({ stack, message }: Error): string {
  const text = String(stack ?? '');
  const at = text.indexOf(message);
  const frames = at < 0 ? text : text.slice(at + message.length);
  return frames
    .split('\n')
    .filter((line) => FRAME.test(line))
    .join('\n');
}
