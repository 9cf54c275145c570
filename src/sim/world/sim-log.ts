// The log of the processes under test: lines go to the trace, and a line that can only mean a fault of the program is a violation.

import { describeError, type LogFields, type Logger } from '../../base/log.ts';

/** Told at level error though faults of the false world cause them. */
const expected: ReadonlySet<string> = new Set([
  'a request of the task queue was given up', // no host has room, or the quota of its project none
  'commit failed',
  'cannot register; carrying on with what was last wanted', // a registration that the network repeated came in between
]);

export interface SimLogOptions {
  readonly trace: (line: () => string) => void;
  readonly onFault: (message: string) => void;
}

export function createSimLog(options: SimLogOptions, bound: LogFields = {}): Logger {
  const line = (level: string) => (message: string, fields?: LogFields) => {
    options.trace(() => {
      const { process = '?', ...rest } = { ...bound, ...fields };
      return `${String(process)}: ${level} ${message} ${textOf(rest)}`;
    });
  };
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error(message, fields) {
      line('error')(message, fields);
      if (!expected.has(message)) options.onFault(`${message} ${textOf({ ...bound, ...fields })}`);
    },
    with: (fields) => createSimLog(options, { ...bound, ...fields }),
  };
}

function textOf(fields: LogFields): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}=${value instanceof Error ? describeError(value) : JSON.stringify(value)}`)
    .join(' ');
}
