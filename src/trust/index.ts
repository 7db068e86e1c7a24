export { createAuthenticator } from './authenticator.js';
export { APPROVAL_TYPE, createNodeIdentity, generateNodeKey, type RetiredKey } from './identity.js';
export { pinnedKeysOf } from './keys.js';
export type { Authenticator, NodeIdentity, Peer, PeerDirectory, PeerKeySource } from './model.js';
export { createPeerDirectory, mayPass } from './peers.js';
export type { Principal } from './principal.js';
export { isApproval, issuerOf, verifyApproval, verifyReceipt } from './receipts.js';
export { verifyStatement } from './statements.js';
