// RunLog: the log of a run as lines, from its bytes as they come. Each stored line is `TIME STREAM TAG TEXT`; tag `P`: the program's line
// continues in the next stored line of its stream. Only the lines are kept; they are rendered when they become visible.

import { ansiLine, type AnsiLine, type LogStyle, plainStyle } from './ansi-line.ts';

export type LogStream = 'stdout' | 'stderr';

export interface LogLine {
  /** When the host received its beginning; undefined: its time cannot be read. */
  readonly atMs: number | undefined;
  readonly stream: LogStream;
  /** With the escape sequences that the program wrote. */
  readonly text: string;
  /** The style at its beginning, from the line before. */
  readonly start: LogStyle;
}

/** A collapsible group: the lines from its title to its end. */
export interface LogGroup {
  readonly title: string;
  /** Index of the line with the title. */
  readonly from: number;
  /** Index of its last line; undefined: not ended yet. */
  to: number | undefined;
}

const newLine = 0x0a;
const headerBytesMax = 64;
const header = /^(\d{4}-\d\d-\d\dT[0-9:.]{8,20}Z) (stdout|stderr) ([FP]) /;
const latin1 = new TextDecoder('latin1');
/** A line without `ESC [` keeps the style, and needs no parser. */
const escape = '\u001b';
const groupMark = /^(?:::group::|##\[group\])(.*)$/;
const groupEnd = /^(?:::endgroup::|##\[endgroup\])/;

export class RunLog {
  readonly lines: LogLine[] = [];
  readonly groups: LogGroup[] = [];
  /** Bytes read so far: where a reader continues. */
  bytes = 0;
  #held = new Uint8Array(0);
  readonly #open = new Map<LogStream, { readonly atMs: number | undefined; readonly parts: Uint8Array[] }>();
  readonly #style = new Map<LogStream, LogStyle>();

  push(piece: Uint8Array): void {
    this.bytes += piece.length;
    const all = this.#held.length === 0 ? piece : joined([this.#held, piece]);
    let from = 0;
    for (let end = all.indexOf(newLine); end >= 0; end = all.indexOf(newLine, from)) {
      this.#stored(all.subarray(from, end));
      from = end + 1;
    }
    this.#held = all.slice(from);
  }

  /** The log is complete: an unfinished line counts as a line. */
  end(): void {
    for (const [stream, { atMs, parts }] of this.#open) this.#add(stream, atMs, parts);
    this.#open.clear();
  }

  #stored(line: Uint8Array): void {
    const [head = '', time = '', stream, tag] = header.exec(latin1.decode(line.subarray(0, headerBytesMax))) ?? [];
    if (stream !== 'stdout' && stream !== 'stderr') return; // the rest of a line that was cut where the log reached its limit
    const begun = this.#open.get(stream) ?? { atMs: timeOf(time), parts: [] };
    begun.parts.push(line.slice(head.length));
    if (tag === 'P') return void this.#open.set(stream, begun);
    this.#open.delete(stream);
    this.#add(stream, begun.atMs, begun.parts);
  }

  #add(stream: LogStream, atMs: number | undefined, parts: readonly Uint8Array[]): void {
    // A character may be split between two chunks.
    const text = new TextDecoder().decode(joined(parts));
    const start = this.#style.get(stream) ?? plainStyle;
    this.#fold(text);
    this.lines.push({ atMs, stream, text, start });
    if (text.includes(escape)) this.#style.set(stream, ansiLine(text, start).end);
  }

  #fold(text: string): void {
    const index = this.lines.length;
    const last = this.groups.at(-1);
    const title = groupMark.exec(text)?.[1];
    if (title === undefined && !groupEnd.test(text)) return;
    if (last && last.to === undefined) last.to = title === undefined ? index : index - 1;
    if (title !== undefined) this.groups.push({ title: title.trim() || 'Group', from: index, to: undefined });
  }
}

/** It ends a group, and has no text of its own. */
export function isGroupEnd({ text }: LogLine): boolean {
  return groupEnd.test(text);
}

export function styledLine({ text, start }: LogLine): AnsiLine {
  return ansiLine(text, start);
}

/** Without escape sequences: for the search and the download. */
export function plainText(line: LogLine): string {
  return styledLine(line)
    .runs.map(({ text }) => text)
    .join('');
}

/** Indexes of the lines that are shown while these groups, by index of their title, are closed. */
export function shownLines({ lines, groups }: RunLog, closed: ReadonlySet<number>): readonly number[] | undefined {
  if (closed.size === 0) return undefined; // all
  const shown: number[] = [];
  let at = 0;
  for (const { from, to = lines.length - 1 } of groups) {
    if (!closed.has(from)) continue;
    for (; at <= from; at += 1) shown.push(at);
    at = to + 1;
  }
  for (; at < lines.length; at += 1) shown.push(at);
  return shown;
}

function timeOf(text: string): number | undefined {
  const atMs = Date.parse(text.replace(/(\.\d{3})\d+Z$/, '$1Z'));
  return Number.isNaN(atMs) ? undefined : atMs;
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
