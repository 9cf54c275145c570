// What a command prints: a table for people, JSON or YAML for programs. Foreign text never reaches a terminal as it is.

import pc from 'picocolors';
import type { Cli, Output } from '../cli.ts';
import { usageError } from '../exit-codes.ts';
import { fitColumns, type TableColumn } from './fit-columns.ts';
import { visible, visibleInJson } from './terminal.ts';

/** `wide`: the table with all its columns and whole cells, whatever has room. */
export const formats = ['table', 'wide', 'json', 'yaml', 'name'] as const;
export type Format = (typeof formats)[number];

export function parseFormat(text: string): Format {
  const format = formats.find((known) => known === text);
  if (!format) throw usageError(`-o cannot be "${text}"`, `choose one of: ${formats.join(', ')}`);
  return format;
}

/** For what is no list of things with names. */
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
  /** Where a terminal is too narrow minor columns go first; major ones stay, as the first of a table does, and are cut. */
  readonly importance?: 'minor' | 'major';
  /** What stands there when there is nothing to tell: a column of nothing else goes before all others. Default: nothing. */
  readonly usual?: string;
  /** Where there is no terminal whose width decides, longer cells are cut to this many characters; `wide` has them whole. */
  readonly longest?: number;
  readonly paint?: (cell: string, row: T, colours: Colours) => string;
}

export type Colours = ReturnType<typeof pc.createColors>;

export function coloursFor(output: Output, environment: Cli['environment']): Colours {
  return pc.createColors(output.isTTY === true && !environment['NO_COLOR'] && environment['TERM'] !== 'dumb');
}

export interface TableOptions {
  readonly colours?: Colours;
  /** Lines are cut here; absent: never. */
  readonly columns?: number | undefined;
  /** No cell is cut, not even to its column's `longest`. */
  readonly whole?: boolean;
  /** At least so wide, so that rows printed later stand under the same headers. */
  readonly widths?: readonly number[];
  readonly header?: boolean;
}

const gap = '  ';
/** Characters: a cell that is cut shorter says too little of a reason or a name, and of anything else. */
const leastMajor = 30;
const leastPlain = 10;
/** Characters, of a column's `longest`: a sentence fits, and what a hypervisor said does not fill a page. */
export const longestReason = 120;

/** Lines without their ends. */
export function tableLines<T>(columns: readonly Column<T>[], rows: readonly T[], options: TableOptions = {}): string[] {
  return table(columns, rows, options).lines;
}

/** Its lines, and the headers of the columns that have something to tell and no room. */
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

/** How many characters a line of a terminal has. Undefined: it is none, or does not know: some say 0. */
export function terminalColumns({ isTTY, columns }: Output): number | undefined {
  return isTTY && columns !== undefined && columns > 0 ? columns : undefined;
}

/** `format` where the command has `-o`: then it is said what `-o wide` would show more. */
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

/** `value` for programs. YAML's library is loaded only for those who ask for it. */
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

/** A list in the format that was asked for. `empty` is told on standard error, so that standard output stays a plain table. */
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

/** `label  value` lines under each other. */
export function fieldLines(
  fields: readonly (readonly [label: string, value: string | undefined])[],
  indent = '',
): string[] {
  const given = fields.filter((field): field is readonly [string, string] => field[1] !== undefined && field[1] !== '');
  const width = Math.max(0, ...given.map(([label]) => label.length));
  return given.map(([label, value]) => `${indent}${label.padEnd(width)}  ${visible(value)}`);
}
