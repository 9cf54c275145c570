// A table of plain comma-separated text (no quotes), read by columns, perhaps gzipped. Every fault names file, line and column, and
// nothing is ever guessed: what cannot be read ends the reading.

import { gunzipSync } from 'node:zlib';

/** The cells of one line, asked for by the place of the column (see `CsvTable.place`). */
export interface CsvLine {
  /** Lines are counted from 1, the header's. */
  readonly line: number;
  text(place: number): string;
  /** 0 or more, at most 2^31 - 1; `whenEmpty` for an empty cell, or a fault if there is none. */
  integer(place: number, whenEmpty?: number): number;
  /** Ends the reading. */
  fault(place: number, complaint: string): never;
}

export interface CsvTable {
  readonly columns: readonly string[];
  /** Lines after the header: an upper limit, for it counts empty ones too. */
  readonly linesMax: number;
  /** Where a column stands, or -1 when the file has none of that name. */
  place(column: string): number;
  forEachLine(visit: (line: CsvLine) => void): void;
}

const newline = 10;
const comma = 44;
const zero = 48;
const quote = 34;
const carriageReturn = 13;
const integerMax = 2 ** 31 - 1;

/** `source` is what faults call the file. */
export function readCsvTable(packed: Uint8Array, source: string): CsvTable {
  const bytes = unpack(packed, source);
  const byteAt = (at: number): number => bytes[at] ?? newline;
  const textOf = (from: number, to: number): string => utf8.decode(bytes.subarray(from, to));
  const lineEnd = (from: number): number => {
    const found = bytes.indexOf(newline, from);
    return found < 0 ? bytes.length : found;
  };
  const contentEnd = (from: number, end: number): number =>
    end > from && byteAt(end - 1) === carriageReturn ? end - 1 : end;

  const headerEnd = lineEnd(0);
  const columns = textOf(0, contentEnd(0, headerEnd))
    .replace(/^\uFEFF/, '')
    .split(',');
  if (columns.length === 1 && columns[0] === '')
    throw new Error(`cannot read ${source}: it is empty; its first line must name the columns`);
  const twice = columns.find((column, i) => columns.indexOf(column) !== i);
  if (twice !== undefined)
    throw new Error(`cannot read ${source}, line 1: the column "${twice}" is there twice; leave one`);

  // Where the cells of the current line begin; one more entry than columns, so that a cell ends before the next one's begin.
  const starts = new Int32Array(columns.length + 1);
  let line = 1;
  const fault = (place: number, complaint: string): never => {
    throw new Error(`cannot read ${source}, line ${line}, column "${columns[place] ?? place}": ${complaint}`);
  };
  const cell = (place: number): string => textOf(starts[place] ?? 0, (starts[place + 1] ?? 1) - 1);
  const current: CsvLine = {
    get line() {
      return line;
    },
    text: (place) => cell(place),
    integer(place, whenEmpty) {
      const from = starts[place] ?? 0;
      const to = (starts[place + 1] ?? 1) - 1;
      if (from === to) return whenEmpty ?? fault(place, 'it is empty; a whole number of 0 or more must stand here');
      let value = 0;
      for (let at = from; at < to; at++) {
        const digit = byteAt(at) - zero;
        if (digit < 0 || digit > 9) return fault(place, `"${cell(place)}" is not a whole number of 0 or more`);
        value = 10 * value + digit;
        if (value > integerMax) return fault(place, `"${cell(place)}" is too large; the limit is ${integerMax}`);
      }
      return value;
    },
    fault,
  };

  const split = (from: number, to: number): void => {
    let cells = 0;
    starts[0] = from;
    for (let at = from; at < to; at++) {
      const byte = byteAt(at);
      if (byte === quote)
        fault(
          Math.min(cells, columns.length - 1),
          'quoted cells are not supported; write it without quotes and commas',
        );
      if (byte !== comma) continue;
      cells += 1;
      if (cells < columns.length) starts[cells] = at + 1;
    }
    if (cells + 1 !== columns.length)
      throw new Error(
        `cannot read ${source}, line ${line}: ${cells + 1} cells, and the header names ${columns.length} columns`,
      );
    starts[columns.length] = to + 1;
  };

  return {
    columns,
    linesMax: countOf(newline, bytes) + 1,
    place: (column) => columns.indexOf(column),
    forEachLine(visit) {
      line = 1;
      for (let from = headerEnd + 1; from < bytes.length; ) {
        line += 1;
        const end = lineEnd(from);
        const to = contentEnd(from, end);
        if (to > from) {
          split(from, to);
          visit(current);
        }
        from = end + 1;
      }
    },
  };
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

/** Refuses a header that lacks a column, or has one that nobody reads: a misspelt column must not pass as an absent one. */
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
