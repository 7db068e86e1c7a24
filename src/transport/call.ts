import type { ServerCallContext } from '@a2a-js/sdk/server';
import type { Message } from '../protocol/index.js';
import type { Principal } from '../trust/index.js';

const CALL = 'holdfast.call';

/** One authenticated request on its way through a binding and the request handler. */
export interface Call {
  readonly principal: Principal;
  /** Aborted when the client has gone or the server stops. */
  readonly signal: AbortSignal;
  /** The message as it was read strictly from the wire, for requests that send one. */
  message: Message | null;
  /** What the request handler really threw; the bindings answer from this, never from the SDK's rendering. */
  error: unknown;
}

/** The SDK's idea of a caller, which carries the call to where the SDK builds its context. */
export class CallUser {
  readonly isAuthenticated = true;

  constructor(readonly call: Call) {}

  get userName(): string {
    return this.call.principal.agent;
  }
}

export function attachCall(context: ServerCallContext, call: Call): ServerCallContext {
  context.state.set(CALL, call);
  return context;
}

export function callOf(context: ServerCallContext): Call {
  return context.state.get(CALL) as Call;
}
