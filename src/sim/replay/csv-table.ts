// A table of plain comma-separated text (no quotes), read by columns, perhaps gzipped. Every fault names file, line and column, and
// nothing is ever guessed: what cannot be read ends the reading.

import { gunzipSync } from 'node:zlib';

/** The cells of the current line, by the place of their column (`CsvTable.place`). */
export interface CsvLine {
  /** Lines are counted from 1, the header's. */
  readonly line: number;
  text(place: number): string;
  /** 0 or more, at most 2^31 - 1; `whenEmpty` for an empty cell, or a fault if there is none. */
  integer(place: number, whenEmpty?: number): number;
  /** Ends the reading. */
  fault(place: number, complaint: string): never;
}

const newline = 10;
const comma = 44;
const zero = 48;
const quote = 34;
const carriageReturn = 13;
const integerMax = 2 ** 31 - 1;

/** `source` is the name of the file in faults. */
export function readCsvTable(packed: Uint8Array, source: string): CsvTable {
  return new CsvTable(unpack(packed, source), source);
}

export class CsvTable implements CsvLine {
  readonly columns: readonly string[];
  readonly #bytes: Uint8Array;
  readonly #source: string;
  readonly #headerEnd: number;
  /** Where the cells of the current line begin; one more entry than columns, so that a cell ends before the next begins. */
  readonly #starts: Int32Array;
  #line = 1;

  constructor(bytes: Uint8Array, source: string) {
    this.#bytes = bytes;
    this.#source = source;
    this.#headerEnd = this.#lineEnd(0);
    this.columns = this.#textOf(0, this.#contentEnd(0, this.#headerEnd))
      .replace(/^\uFEFF/, '')
      .split(',');
    if (this.columns.length === 1 && this.columns[0] === '')
      throw new Error(`cannot read ${source}: it is empty; its first line must name the columns`);
    const twice = this.columns.find((column, i) => this.columns.indexOf(column) !== i);
    if (twice !== undefined)
      throw new Error(`cannot read ${source}, line 1: the column "${twice}" is there twice; leave one`);
    this.#starts = new Int32Array(this.columns.length + 1);
  }

  /** Lines after the header: an upper limit, as it counts empty lines too. */
  get linesMax(): number {
    return countOf(newline, this.#bytes) + 1;
  }

  /** Where a column stands, or -1 when the file has none of that name. */
  place(column: string): number {
    return this.columns.indexOf(column);
  }

  forEachLine(visit: (line: CsvLine) => void): void {
    this.#line = 1;
    for (let from = this.#headerEnd + 1; from < this.#bytes.length; ) {
      this.#line += 1;
      const end = this.#lineEnd(from);
      const to = this.#contentEnd(from, end);
      if (to > from) {
        this.#split(from, to);
        visit(this);
      }
      from = end + 1;
    }
  }

  get line(): number {
    return this.#line;
  }

  text(place: number): string {
    return this.#textOf(this.#starts[place] ?? 0, (this.#starts[place + 1] ?? 1) - 1);
  }

  integer(place: number, whenEmpty?: number): number {
    const from = this.#starts[place] ?? 0;
    const to = (this.#starts[place + 1] ?? 1) - 1;
    if (from === to) return whenEmpty ?? this.fault(place, 'it is empty; a whole number of 0 or more must stand here');
    let value = 0;
    for (let at = from; at < to; at++) {
      const digit = this.#byteAt(at) - zero;
      if (digit < 0 || digit > 9) return this.fault(place, `"${this.text(place)}" is not a whole number of 0 or more`);
      value = 10 * value + digit;
      if (value > integerMax)
        return this.fault(place, `"${this.text(place)}" is too large; the limit is ${integerMax}`);
    }
    return value;
  }

  fault(place: number, complaint: string): never {
    const column = this.columns[place] ?? place;
    throw new Error(`cannot read ${this.#source}, line ${this.#line}, column "${column}": ${complaint}`);
  }

  #split(from: number, to: number): void {
    const { length } = this.columns;
    let cells = 0;
    this.#starts[0] = from;
    for (let at = from; at < to; at++) {
      const byte = this.#byteAt(at);
      if (byte === quote)
        this.fault(Math.min(cells, length - 1), 'quoted cells are not supported; write it without quotes and commas');
      if (byte !== comma) continue;
      cells += 1;
      if (cells < length) this.#starts[cells] = at + 1;
    }
    if (cells + 1 !== length)
      throw new Error(
        `cannot read ${this.#source}, line ${this.#line}: ${cells + 1} cells, and the header names ${length} columns`,
      );
    this.#starts[length] = to + 1;
  }

  #byteAt(at: number): number {
    return this.#bytes[at] ?? newline;
  }

  #textOf(from: number, to: number): string {
    return utf8.decode(this.#bytes.subarray(from, to));
  }

  #lineEnd(from: number): number {
    const found = this.#bytes.indexOf(newline, from);
    return found < 0 ? this.#bytes.length : found;
  }

  #contentEnd(from: number, end: number): number {
    return end > from && this.#byteAt(end - 1) === carriageReturn ? end - 1 : end;
  }
}

const utf8 = new TextDecoder();

function unpack(packed: Uint8Array, source: string): Uint8Array {
  if (packed[0] !== 0x1f || packed[1] !== 0x8b) return packed;
  try {
    return gunzipSync(packed);
  } catch (cause) {
    throw new Error(
      `cannot unpack ${source}: ${cause instanceof Error ? cause.message : String(cause)}; is the file whole?`,
      { cause },
    );
  }
}

function countOf(byte: number, bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(byte); at >= 0; at = bytes.indexOf(byte, at + 1)) count += 1;
  return count;
}

/** Refuses a header that lacks a column, or has an unknown one: a misspelt column must not pass as an absent one. */
export function checkColumns(
  table: CsvTable,
  {
    source,
    required,
    optional,
  }: { readonly source: string; readonly required: readonly string[]; readonly optional: readonly string[] },
): void {
  const known = [...required, ...optional];
  const missing = required.filter((column) => !table.columns.includes(column));
  const unknown = table.columns.filter((column) => !known.includes(column));
  if (missing.length > 0)
    throw new Error(
      `cannot read ${source}, line 1: no column ${missing.map(named).join(', ')}; there are ${table.columns.map(named).join(', ')}`,
    );
  if (unknown.length > 0)
    throw new Error(
      `cannot read ${source}, line 1: unknown column ${unknown.map(named).join(', ')}; known are ${known.map(named).join(', ')}`,
    );
}

const named = (column: string): string => `"${column}"`;
