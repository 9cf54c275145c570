// The output of commands: a table for people, JSON or YAML for programs. External text never reaches a terminal
// unescaped.

import pc from 'picocolors';
import type { Cli, Output } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import { fitColumns, type TableColumn } from './fit-columns.ts';
import { visible, visibleInJson } from './terminal.ts';

/** `wide`: the table with all columns and complete cells, whatever the width. */
export const formats = ['table', 'wide', 'json', 'yaml', 'name'] as const;
export type Format = (typeof formats)[number];

export function parseFormat(text: string): Format {
  const format = formats.find((known) => known === text);
  if (!format) throw usageError(`-o cannot be "${text}"`, `choose one of: ${formats.join(', ')}`);
  return format;
}

/** For output that is not a list of named items. */
export function parseValueFormat(text: string): Format {
  if (text === 'name')
    throw usageError('-o cannot be "name": this output has no names', 'choose one of: table, json, yaml');
  return parseFormat(text);
}

export interface Column<T> {
  readonly header: string;
  readonly value: (row: T) => string;
  /** For amounts, which are never cut: a part of a number is another number. */
  readonly right?: boolean;
  /** On a narrow terminal minor columns are dropped first; major ones, and the first of a table, stay and are cut. */
  readonly importance?: 'minor' | 'major';
  /** The usual content: a column with nothing else is dropped before all others. Default: empty. */
  readonly usual?: string;
  /** Without a terminal width, longer cells are cut to this number of characters; `wide` shows them completely. */
  readonly longest?: number;
  readonly paint?: (cell: string, row: T, colours: Colours) => string;
}

export type Colours = ReturnType<typeof pc.createColors>;

export function coloursFor(output: Output, environment: Cli['environment']): Colours {
  return pc.createColors(output.isTTY === true && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb');
}

export interface TableOptions {
  readonly colours?: Colours;
  /** Maximum line length; absent: unlimited. */
  readonly columns?: number | undefined;
  /** No cell is cut, not even to its column's `longest`. */
  readonly whole?: boolean;
  /** Minimum widths, so that rows printed later align with the headers. */
  readonly widths?: readonly number[];
  readonly header?: boolean;
}

const gap = '  ';
/** Characters: a shorter cut makes a reason or a name useless. */
const leastMajor = 30;
const leastPlain = 10;
/** Characters, for a column's `longest`: a sentence fits, and a hypervisor's message does not fill a page. */
export const longestReason = 120;

/** Lines without newlines. */
export function tableLines<T>(columns: readonly Column<T>[], rows: readonly T[], options: TableOptions = {}): string[] {
  return table(columns, rows, options).lines;
}

/** The lines, and the headers of dropped columns that are not empty. */
function table<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  options: TableOptions,
): { readonly lines: string[]; readonly leftOut: string[] } {
  const cells = rows.map((row) => columns.map((column) => cellOf(column, row, options)));
  const widths = tableWidths(columns, rows, options);
  const measured = columns.map(({ header, right, importance, usual = '-' }, i): TableColumn => {
    const width = widths[i] ?? 0;
    const kept = i === 0 || importance === 'major';
    return {
      width,
      least: right ? width : Math.min(width, Math.max(header.length, kept ? leastMajor : leastPlain)),
      importance: kept ? 'major' : (importance ?? 'plain'),
      empty: cells.every((texts) => texts[i] === usual || texts[i] === '-'),
    };
  });
  const shown = fitColumns(measured, options.columns ?? Number.POSITIVE_INFINITY, gap.length);
  const line = (texts: readonly string[], paint: (text: string, index: number) => string): string =>
    shown
      .map(({ index, width }, place) => {
        const text = cut(texts[index] ?? '', width);
        const last = place === shown.length - 1;
        return paint(columns[index]?.right ? text.padStart(width) : last ? text : text.padEnd(width), index);
      })
      .join(gap)
      .trimEnd();
  const head = line(
    columns.map(({ header }) => header),
    (text) => options.colours?.dim(text) ?? text,
  );
  const body = cells.map((texts, i) =>
    line(texts, (text, index) => {
      const row = rows[i];
      const paint = columns[index]?.paint;
      return paint && options.colours && row !== undefined ? paint(text, row, options.colours) : text;
    }),
  );
  return {
    lines: options.header === false ? body : [head, ...body],
    leftOut: columns.flatMap(({ header }, i) =>
      shown.some(({ index }) => index === i) || measured[i]?.empty ? [] : [header],
    ),
  };
}

export function tableWidths<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  options: Pick<TableOptions, 'columns' | 'whole' | 'widths'> = {},
): number[] {
  return columns.map((column, i) =>
    Math.max(options.widths?.[i] ?? 0, column.header.length, ...rows.map((row) => cellOf(column, row, options).length)),
  );
}

function cellOf<T>(column: Column<T>, row: T, { columns, whole }: Pick<TableOptions, 'columns' | 'whole'>): string {
  const text = visible(column.value(row)) || '-';
  return whole || columns !== undefined || column.longest === undefined ? text : cut(text, column.longest);
}

function cut(text: string, room: number): string {
  if (text.length <= room) return text;
  return room <= 0 ? '' : `${text.slice(0, room - 1)}…`;
}

/** The width of a terminal in characters. Undefined: not a terminal, or its width is unknown: some report 0. */
export function terminalColumns({ isTTY, columns }: Output): number | undefined {
  return isTTY && columns !== undefined && columns > 0 ? columns : undefined;
}

/** `format` for commands with `-o`: then a note says what `-o wide` would add. */
export function printTable<T>(
  cli: Cli,
  columns: readonly Column<T>[],
  rows: readonly T[],
  format?: 'table' | 'wide',
): void {
  const { lines, leftOut } = table(columns, rows, {
    colours: coloursFor(cli.stdout, cli.environment),
    columns: format === 'wide' ? undefined : terminalColumns(cli.stdout),
    whole: format === 'wide',
  });
  cli.stdout.write(`${lines.join('\n')}\n`);
  if (format !== undefined && leftOut.length > 0)
    cli.stderr.write(`no room for ${leftOut.join(', ')}; -o wide shows all\n`);
}

/** `value` for programs. The YAML library is loaded only when needed. */
export async function printValue(cli: Cli, format: 'json' | 'yaml', value: unknown): Promise<void> {
  if (format === 'json') {
    cli.stdout.write(`${visibleInJson(JSON.stringify(value, null, 2))}\n`);
    return;
  }
  const { stringify } = await import('yaml');
  cli.stdout.write(visible(stringify(value, { lineWidth: 0, aliasDuplicateObjects: false }), '\n'));
}

interface Named {
  readonly metadata: { readonly name: string };
}

/** A list in the requested format. `empty` goes to standard error, so that standard output stays a plain table. */
export async function printList<T extends Named>(
  cli: Cli,
  format: Format,
  list: { readonly items: readonly T[]; readonly columns: readonly Column<T>[]; readonly empty: string },
): Promise<void> {
  if (format === 'json' || format === 'yaml') return printValue(cli, format, list.items);
  if (format === 'name') return printNames(cli, list.items);
  if (list.items.length === 0) cli.stderr.write(`${list.empty}\n`);
  else printTable(cli, list.columns, list.items, format);
}

export function printNames(cli: Cli, items: readonly Named[]): void {
  cli.stdout.write(items.map(({ metadata }) => `${visible(metadata.name)}\n`).join(''));
}

/** `label  value` lines, aligned. */
export function fieldLines(
  fields: readonly (readonly [label: string, value: string | undefined])[],
  indent = '',
): string[] {
  const given = fields.filter((field): field is readonly [string, string] => field[1] !== undefined && field[1] !== '');
  const width = Math.max(0, ...given.map(([label]) => label.length));
  return given.map(([label, value]) => `${indent}${label.padEnd(width)}  ${visible(value)}`);
}
