// One event per line, with fields. info: the world changed; warn: heals by itself; error: needs a person.

export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log with `fields` on every line. */
  with(fields: LogFields): Logger;
}

export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  with: () => silentLogger,
};

/** A thrown value as one line for a log or a message. */
export function describeError(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
