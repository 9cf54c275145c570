// A log for people: a line of plain text for each event. External input must not be able to control the terminal.

import type { LogFields, Logger } from './log.ts';

const logLevels = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** `auto`: text on a terminal, JSON elsewhere. */
export type LogFormat = 'auto' | 'text' | 'json';

interface TextLogOptions {
  readonly level: LogLevel;
  readonly nowMs: () => number;
  /** Takes one line, including its newline. */
  readonly write: (line: string) => void;
}

export function createTextLogger(options: TextLogOptions, bound: LogFields = {}): Logger {
  const { level: lowest, nowMs, write } = options;
  const log =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}): void => {
      if (logLevels.indexOf(level) < logLevels.indexOf(lowest)) return;
      write(textLine({ level, message, fields: { ...bound, ...fields }, nowMs: nowMs() }));
    };
  return {
    debug: log('debug'),
    info: log('info'),
    warn: log('warn'),
    error: log('error'),
    with: (fields) => createTextLogger(options, { ...bound, ...fields }),
  };
}

interface LogEvent {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
  readonly nowMs: number;
}

/** `20:14:09.120 WARN  cannot register  host=h1 delayMs=500`, in UTC like the times in JSON. */
export function textLine({ level, message, fields, nowMs }: LogEvent): string {
  const time = new Date(nowMs).toISOString().slice(11, 23);
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [`${plain(name)}=${textOf(value)}`],
  );
  const rest = pairs.length === 0 ? '' : `  ${pairs.join(' ')}`;
  return `${time} ${level.toUpperCase().padEnd(5)} ${plain(message)}${rest}\n`;
}

/** Simple words unquoted, everything else as JSON, so that the end of a value is unambiguous. */
function textOf(value: unknown): string {
  if (typeof value === 'string' && /^[\w./:@%+,-]+$/.test(value)) return value;
  const told = value instanceof Error ? value.message : value;
  return plain(JSON.stringify(told) ?? String(told));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const steering = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

function plain(text: string): string {
  return text.replace(steering, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
