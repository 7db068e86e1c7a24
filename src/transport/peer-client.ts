import {
  AgentCard,
  Message as SdkMessage,
  Task as SdkTask,
  type SendMessageConfiguration,
  type TaskPushNotificationConfig,
} from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  JsonRpcTransportFactory,
  ServiceParameters,
  withA2AExtensions,
} from '@a2a-js/sdk/client';
import { TaskNotFoundError } from '@a2a-js/sdk/errors';
import {
  canonical,
  HoldfastError,
  inTime,
  isErrorCode,
  isHoldfastError,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type Limits,
  parseStrictJson,
} from '../core/index.js';
import { faultPoint } from '../faults/index.js';
import type { PeerClient } from '../handoff/index.js';
import {
  A2A_VERSION,
  CONTROL_LIMIT_MS,
  controlMessage,
  ERROR_DOMAIN,
  EXTENSION_URI,
  type Message,
  parseControlAnswer,
  type Task,
} from '../protocol/index.js';
import type { NodeIdentity } from '../trust/index.js';
import type { GuardedFetch } from './guarded-fetch.js';
import { createCardCache } from './peer-cards.js';

export interface PeerClientOptions {
  readonly guarded: GuardedFetch;
  readonly identity: NodeIdentity;
  readonly limits: Limits;
}

/** What a watch needs of the wire; each is for a task that this node made at the peer. */
export interface TaskClient extends Pick<PeerClient, 'getTask'> {
  /** @throws not_found, peer_error, peer_unreachable, outcome_unknown, unauthenticated */
  createPush(peerUrl: string, config: TaskPushNotificationConfig): Promise<void>;
  /** @throws the same */
  deletePush(peerUrl: string, taskId: string, id: string): Promise<void>;
}

const AT_ONCE: SendMessageConfiguration = {
  acceptedOutputModes: [],
  taskPushNotificationConfig: undefined,
  returnImmediately: true,
};

type PeerErrorData = Readonly<Record<string, string | number | boolean | null>>;

function peerError(message: string, data: PeerErrorData = {}, cause?: unknown): HoldfastError {
  return new HoldfastError('peer_error', message, { data, cause });
}

/** The reason a Holdfast peer gave, from the ErrorInfo of a JSON-RPC or HTTP+JSON error. */
function reasonIn(details: unknown): { reason?: string } {
  if (!Array.isArray(details)) return {};
  const info = details.find((one) => one?.domain === ERROR_DOMAIN && typeof one?.reason === 'string');
  if (info === undefined) return {};
  return isErrorCode(info.reason.toLowerCase()) ? { reason: info.reason } : {};
}

function detailsOf(body: JsonValue): unknown {
  const error = (body as { error?: { data?: unknown; details?: unknown } } | null)?.error;
  return error?.data ?? error?.details;
}

/** The interface that messages are sent to; only ever on the origin that the operator configured. */
function jsonRpcInterface(card: JsonObject, peerUrl: string): JsonObject {
  const all = Array.isArray(card.supportedInterfaces) ? card.supportedInterfaces : [];
  const found = all.find(
    (one): one is JsonObject =>
      isJsonObject(one) && one.protocolBinding === 'JSONRPC' && one.protocolVersion === A2A_VERSION,
  );
  if (found === undefined) throw peerError('The peer offers no JSON-RPC interface of A2A 1.0.');
  if (typeof found.url !== 'string' || !URL.canParse(found.url))
    throw peerError("The peer's card has no URL.");
  if (new URL(found.url).origin !== new URL(peerUrl).origin) {
    throw peerError("The peer's card names an interface on another origin than the configured one.");
  }
  return found;
}

/** Exactly the JSON that is to be sent, in the SDK's form. @throws message_invalid where its codec would change it */
function toSdkMessage(text: string): SdkMessage {
  const wire = JSON.parse(text) as JsonObject;
  const message = SdkMessage.fromJSON(wire);
  if (canonical(SdkMessage.toJSON(message)) !== canonical(wire)) {
    throw new HoldfastError('message_invalid', 'The message would not cross as it is written.');
  }
  return message;
}

function toWireTask(answer: unknown): Task {
  if (typeof answer !== 'object' || answer === null || 'messageId' in answer) {
    throw peerError('The peer answered with a message where a task was due.');
  }
  const task = SdkTask.toJSON(answer as SdkTask) as Partial<Task>;
  const state: string | undefined = task.status?.state;
  if (!task.id || state === undefined || state === 'UNRECOGNIZED') {
    throw peerError('The peer answered with something that is not a task.');
  }
  return task as Task;
}

function isNotFound(error: unknown): boolean {
  return error instanceof TaskNotFoundError;
}

function toWireMessage(answer: unknown): Message {
  if (typeof answer !== 'object' || answer === null || !('messageId' in answer)) {
    throw peerError('The peer answered with a task where a message was due.');
  }
  return SdkMessage.toJSON(answer as SdkMessage) as Message;
}

/** A redirect, and whatever the SDK's client makes of an answer, is an error of the peer's. */
function toPeerError(error: unknown): HoldfastError {
  if (!isHoldfastError(error)) {
    const data = reasonIn((error as { data?: unknown } | null)?.data);
    return peerError('The peer answered with an error.', data, error);
  }
  if (error.code !== 'url_forbidden' || error.data.reason !== 'redirect') return error;
  return peerError('The peer answered with a redirect, which is never followed.', error.data, error);
}

/** The client side of A2A: the SDK's JSON-RPC client over the guarded fetch, under this node's identity. */
export function createPeerClient({ guarded, identity, limits }: PeerClientOptions): PeerClient & TaskClient {
  const cards = createCardCache(guarded, limits);
  const bounds = { maxBytes: limits.maxPeerAnswerBytes, timeoutMs: limits.peerTimeoutMs };
  const guardedFetch = guarded.asFetch(bounds);
  const quickFetch = guarded.asFetch({
    ...bounds,
    timeoutMs: Math.min(bounds.timeoutMs, CONTROL_LIMIT_MS),
  });

  /** Reads every answer strictly before the SDK's codec, which would accept anything, sees it. */
  const fetchFor =
    (peerUrl: string, send: typeof fetch): typeof fetch =>
    async (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('authorization', `Bearer ${await identity.tokenFor(peerUrl)}`);
      faultPoint('S4.before_send');
      const response = await send(input, { ...init, headers });
      faultPoint('S5.before_read');
      const bytes = new Uint8Array(await response.arrayBuffer());
      faultPoint('S5.after_read');
      if (response.status === 401)
        throw new HoldfastError('unauthenticated', 'The peer does not know this node.');
      let body: JsonValue;
      try {
        body = parseStrictJson(bytes, limits);
      } catch (error) {
        throw peerError('The peer did not answer in JSON.', { status: response.status }, error);
      }
      if (!response.ok) {
        throw peerError('The peer answered with an error.', {
          status: response.status,
          ...reasonIn(detailsOf(body)),
        });
      }
      return new Response(bytes, { status: response.status, headers: response.headers });
    };

  async function card(peerUrl: string): Promise<JsonObject> {
    try {
      return await cards.get(peerUrl);
    } catch (error) {
      // Only a card was asked for, so that nothing can be in doubt.
      if (isHoldfastError(error) && error.code === 'outcome_unknown') {
        throw new HoldfastError('peer_unreachable', 'The peer did not answer in time.', { cause: error });
      }
      throw toPeerError(error);
    }
  }

  async function clientFor(peerUrl: string, send: typeof fetch = guardedFetch): Promise<Client> {
    const found = await card(peerUrl);
    const selected = jsonRpcInterface(found, peerUrl);
    const factory = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl: fetchFor(peerUrl, send) })],
    });
    const { pushNotifications } = isJsonObject(found.capabilities) ? found.capabilities : {};
    const capabilities = { pushNotifications: pushNotifications === true };
    return factory.createFromAgentCard(
      AgentCard.fromJSON({ name: peerUrl, supportedInterfaces: [selected], capabilities }),
    );
  }

  async function asked<T>(peerUrl: string, question: (client: Client) => Promise<T>): Promise<T> {
    const client = await clientFor(peerUrl);
    try {
      return await question(client);
    } catch (error) {
      throw isNotFound(error)
        ? new HoldfastError('not_found', 'The peer has no such task.')
        : toPeerError(error);
    }
  }

  /** What the peer answered to one message; `read` takes it from the SDK's form. */
  async function exchange<T>(
    peerUrl: string,
    text: string,
    send: typeof fetch,
    read: (answer: unknown) => T,
    configuration?: SendMessageConfiguration,
  ): Promise<T> {
    const message = toSdkMessage(text);
    const client = await clientFor(peerUrl, send);
    try {
      return read(
        await client.sendMessage(
          { tenant: '', message, configuration, metadata: undefined },
          { serviceParameters: ServiceParameters.create(withA2AExtensions(EXTENSION_URI)) },
        ),
      );
    } catch (error) {
      throw toPeerError(error);
    }
  }

  return {
    card,
    getTask: (peerUrl, id) =>
      asked(peerUrl, async (client) =>
        toWireTask(await client.getTask({ tenant: '', id, historyLength: undefined })),
      ),
    createPush: (peerUrl, config) =>
      asked(peerUrl, async (client) => void (await client.createTaskPushNotificationConfig(config))),
    deletePush: (peerUrl, taskId, id) =>
      asked(peerUrl, (client) => client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id })),
    send: (peerUrl, text, { returnImmediately = false } = {}) =>
      exchange(peerUrl, text, guardedFetch, toWireTask, returnImmediately ? AT_ONCE : undefined),
    control: (peerUrl, request) => {
      const text = JSON.stringify(controlMessage(request));
      const read = (answer: unknown) => parseControlAnswer(toWireMessage(answer), request);
      const late = () => new HoldfastError('outcome_unknown', 'The peer did not answer in time.');
      return inTime(CONTROL_LIMIT_MS, exchange(peerUrl, text, quickFetch, read), late);
    },
  };
}
