export { EXIT, EXIT_MEANINGS, type ExitCode, exitCodeOf } from './exit-codes.js';
export type { Io } from './io.js';
export { main } from './main.js';
