/** What the rooms log through; pino fits. Fields are ids, codes and counts, never content or credentials. */
export interface Logger {
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {} };
