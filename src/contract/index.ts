export { defineContract } from './define.js';
export type * from './model.js';
