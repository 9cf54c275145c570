// Output of a program as lines of its log, in the format that Kubernetes has for containers (CRI): TIME STREAM TAG TEXT. Tag F is the end
// of a line, P a part of one that goes on. Bytes are kept as they are.

const newline = 0x0a;
/** A longer line is written in parts. */
const partBytesMax = 16 * 1024;

export type LogStream = 'stdout' | 'stderr';
export type LogTag = 'F' | 'P';

/** As one line of the log. `text` without its newline. */
export function logLine(line: {
  readonly atMs: number;
  readonly stream: LogStream;
  readonly tag: LogTag;
  readonly text: Uint8Array;
}): Buffer {
  const head = `${new Date(line.atMs).toISOString()} ${line.stream} ${line.tag} `;
  return Buffer.concat([Buffer.from(head), line.text, Buffer.from('\n')]);
}

/** The lines of one stream. What is no whole line yet stays here until the rest comes, or until it is flushed. */
export class LogLines {
  readonly #stream: LogStream;
  readonly #mask: (text: Buffer) => Buffer;
  #rest: Buffer = Buffer.alloc(0);

  /** `mask`: of the text of each line, before it is written. */
  constructor(stream: LogStream, mask: (text: Buffer) => Buffer = (text) => text) {
    this.#stream = stream;
    this.#mask = mask;
  }

  /** Bytes that are in no line yet. */
  get pending(): number {
    return this.#rest.length;
  }

  push(bytes: Uint8Array, atMs: number): Buffer[] {
    const all = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    const lines: Buffer[] = [];
    let begin = 0;
    for (let end = all.indexOf(newline); end >= 0; end = all.indexOf(newline, begin)) {
      begin = this.#parts(lines, { all, begin, end, atMs });
      lines.push(this.#line(atMs, 'F', all.subarray(begin, end)));
      begin = end + 1;
    }
    begin = this.#parts(lines, { all, begin, end: all.length, atMs });
    this.#rest = all.subarray(begin);
    return lines;
  }

  /** What is pending, as a part of a line. */
  flush(atMs: number): Buffer[] {
    const text = this.#rest;
    this.#rest = Buffer.alloc(0);
    return text.length === 0 ? [] : [this.#line(atMs, 'P', text)];
  }

  /** Cuts off parts while a line is too long. */
  #parts(
    lines: Buffer[],
    {
      all,
      begin,
      end,
      atMs,
    }: { readonly all: Buffer; readonly begin: number; readonly end: number; readonly atMs: number },
  ): number {
    let at = begin;
    for (; end - at > partBytesMax; at += partBytesMax)
      lines.push(this.#line(atMs, 'P', all.subarray(at, at + partBytesMax)));
    return at;
  }

  #line(atMs: number, tag: LogTag, text: Buffer): Buffer {
    return logLine({ atMs, stream: this.#stream, tag, text: this.#mask(text) });
  }
}
