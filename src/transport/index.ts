export type { AgentExecutor, ExecutionEventBus, RequestContext } from '@a2a-js/sdk/server';
export { buildAgentCard, type CardOptions } from './card.js';
export { createEvidenceDownloader } from './evidence-downloader.js';
export type { ConnectTarget, NetworkPorts, ResolvedAddress } from './guarded-dispatcher.js';
export { createGuardedFetch, type GuardedFetch } from './guarded-fetch.js';
export { createNodeServer, type NodeServer, type NodeServerOptions } from './http-server.js';
export { createPeerClient } from './peer-client.js';
export { createPeerKeySource } from './peer-keys.js';
export type { FetchPolicy } from './url-policy.js';
