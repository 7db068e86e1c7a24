export { EXIT_MEANINGS, exitCodeOf } from './exit-codes.js';
export { main } from './main.js';
