export type * from './model.js';
export type { Principal } from './principal.js';
