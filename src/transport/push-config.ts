import type { TaskPushNotificationConfig } from '@a2a-js/sdk';
import { HoldfastError, isHoldfastError, newId, sha256Hex } from '../core/index.js';
import type { NewPush, PushConfig } from '../ledger/index.js';
import type { GuardedFetch } from './guarded-fetch.js';

const ID = /^[A-Za-z0-9._~-]{1,128}$/;
/** As they can stand in a header. */
const TOKEN = /^[\x21-\x7e]{1,512}$/;
const SCHEME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/;
const CREDENTIALS = /^[\x20-\x7e]{0,4096}$/;

const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = { least: 24, most: 64 };

/** A token in the form of Standard Webhooks is a secret to sign with; `null`: it is another one. @throws message_invalid where it is too short or long */
export function signingSecret(token: string | null): Buffer | null {
  if (!token?.startsWith(SECRET_PREFIX)) return null;
  const text = token.slice(SECRET_PREFIX.length);
  const secret = Buffer.from(text, 'base64');
  const whole = secret.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  if (whole && secret.length >= SECRET_BYTES.least && secret.length <= SECRET_BYTES.most) return secret;
  const { least, most } = SECRET_BYTES;
  throw invalid('token', `must be ${SECRET_PREFIX} and ${least} to ${most} bytes in base64`);
}

export interface PushReader {
  /** URL of the agent that will send. */
  readonly agent: string;
  readonly guarded: Pick<GuardedFetch, 'check'>;
}

/**
 * A configuration as a peer gives it, once it is known to be one that can be sent to. `inline`: it came with a message, and is the same one
 * when the message comes again.
 * @throws message_invalid naming the field
 */
export async function readPush(
  { agent, guarded }: PushReader,
  given: TaskPushNotificationConfig,
  { inline }: { readonly inline: boolean },
): Promise<NewPush> {
  const { id, url, authentication } = given;
  if (id !== '' && !ID.test(id)) throw invalid('id', 'must be letters, digits, . _ ~ - (at most 128)');
  if (url === '') throw invalid('url', 'is required');
  const token = given.token === '' ? null : given.token;
  if (token !== null && !TOKEN.test(token)) throw invalid('token', 'must be visible ASCII (at most 512)');
  signingSecret(token);
  const scheme = authentication?.scheme ?? null;
  if (scheme !== null && !SCHEME.test(scheme)) throw invalid('authentication.scheme', 'must name a scheme');
  const credentials = authentication?.credentials || null;
  if (credentials !== null && !CREDENTIALS.test(credentials)) {
    throw invalid('authentication.credentials', 'must be printable ASCII (at most 4096)');
  }
  await checkReachable(guarded, url);
  const pushId = newId('push');
  const named = inline ? `inline-${sha256Hex(url).slice(0, 16)}` : pushId;
  return {
    pushId,
    configId: id || named,
    agent,
    url,
    origin: new URL(url).origin,
    token,
    scheme,
    credentials,
  };
}

/** Where this agent does not connect to, it is not made to. Looked at again at every delivery. */
async function checkReachable(guarded: PushReader['guarded'], url: string): Promise<void> {
  try {
    await guarded.check(url);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    if (error.code === 'url_forbidden') {
      throw invalid('url', `must be an https URL that this agent may reach (${error.data.reason})`);
    }
    throw invalid('url', 'has a host without an address at present');
  }
}

function invalid(field: string, problem: string): HoldfastError {
  const fields = [{ path: `taskPushNotificationConfig.${field}`, problem }];
  return new HoldfastError('message_invalid', 'The push notification configuration cannot be used.', {
    fields,
  });
}

/** What is told of a configuration: never what proves us to its endpoint. */
export function shownPush({ configId, taskId, url, scheme }: PushConfig): TaskPushNotificationConfig {
  const authentication = scheme === null ? undefined : { scheme, credentials: '' };
  return { tenant: '', id: configId, taskId, url, token: '', authentication };
}
