import { A2AError } from '@a2a-js/sdk/errors';
import type { ServerCallContext } from '@a2a-js/sdk/server';
import { type Call, callOf } from './call.js';

/** What the SDK's code is given in place of an error that is not the protocol's: it would show any text to the peer. */
function neutral(error: unknown): A2AError {
  return error instanceof A2AError ? error : new A2AError('The request failed.');
}

/** Runs one operation; what it throws is kept on the call, and the SDK's code learns no more than it may show. */
export async function recorded<T>(context: ServerCallContext, work: (call: Call) => Promise<T>): Promise<T> {
  const call = callOf(context);
  try {
    return await work(call);
  } catch (error) {
    call.error = error;
    throw neutral(error);
  }
}

export async function* recordedStream<T>(
  context: ServerCallContext,
  work: (call: Call) => AsyncGenerator<T, void, undefined>,
): AsyncGenerator<T, void, undefined> {
  const call = callOf(context);
  try {
    yield* work(call);
  } catch (error) {
    call.error = error;
    throw neutral(error);
  }
}
