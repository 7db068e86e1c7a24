/**
 * What the rooms log through; pino fits. Fields are ids, codes and counts, never content or credentials;
 * an error is handed over whole as `err`, and the logger decides what of it to write.
 */
export interface Logger {
  /** What went as it should. */
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  /** What an operator should look at. */
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  /** What failed here. */
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {} };
