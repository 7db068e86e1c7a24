export type { ConnectTarget, NetworkPorts, ResolvedAddress } from './guarded-dispatcher.js';
export {
  createGuardedFetch,
  type GuardedFetch,
  type GuardedRequest,
  type GuardedResponse,
} from './guarded-fetch.js';
export type { FetchPolicy, ForbiddenReason } from './url-policy.js';
