// What a command prints: a table for people, JSON or YAML for programs. Foreign text never reaches a terminal as it is.

import pc from 'picocolors';
import type { Cli, Output } from './cli.ts';
import { usageError } from './exit-codes.ts';
import { visible, visibleInJson } from './terminal.ts';

export const formats = ['table', 'json', 'yaml', 'name'] as const;
export type Format = (typeof formats)[number];

export function parseFormat(text: string): Format {
  const format = formats.find((known) => known === text);
  if (!format) throw usageError(`-o cannot be "${text}"`, `choose one of: ${formats.join(', ')}`);
  return format;
}

/** For what is no list of things with names. */
export function parseValueFormat(text: string): Format {
  if (text === 'name')
    throw usageError('-o cannot be "name": there are no names to print', 'choose one of: table, json, yaml');
  return parseFormat(text);
}

export interface Column<T> {
  readonly header: string;
  readonly value: (row: T) => string;
  readonly right?: boolean;
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
  /** At least so wide, so that rows printed later stand under the same headers. */
  readonly widths?: readonly number[];
  readonly header?: boolean;
}

const gap = '  ';

/** Lines without their ends. */
export function tableLines<T>(columns: readonly Column<T>[], rows: readonly T[], options: TableOptions = {}): string[] {
  const cells = rows.map((row) => columns.map((column) => visible(column.value(row)) || '-'));
  const widths = tableWidths(columns, rows, options.widths);
  const limit = options.columns ?? Number.POSITIVE_INFINITY;
  const line = (texts: readonly string[], paint: (text: string, index: number) => string): string => {
    let shown = '';
    let room = limit;
    texts.forEach((text, index) => {
      const last = index === texts.length - 1;
      const width = widths[index] ?? 0;
      const padded = columns[index]?.right ? text.padStart(width) : last ? text : text.padEnd(width);
      const part = cut(padded, room);
      shown += paint(part, index) + (last ? '' : gap.slice(0, Math.max(0, room - part.length)));
      room = Math.max(0, room - part.length - gap.length);
    });
    return shown.trimEnd();
  };
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
  return options.header === false ? body : [head, ...body];
}

export function tableWidths<T>(
  columns: readonly Column<T>[],
  rows: readonly T[],
  atLeast: readonly number[] = [],
): number[] {
  return columns.map((column, i) =>
    Math.max(atLeast[i] ?? 0, column.header.length, ...rows.map((row) => (visible(column.value(row)) || '-').length)),
  );
}

function cut(text: string, room: number): string {
  if (text.length <= room) return text;
  return room <= 0 ? '' : `${text.slice(0, room - 1)}…`;
}

export function printTable<T>(cli: Cli, columns: readonly Column<T>[], rows: readonly T[]): void {
  const options = {
    colours: coloursFor(cli.stdout, cli.environment),
    columns: cli.stdout.isTTY ? cli.stdout.columns : undefined,
  };
  cli.stdout.write(`${tableLines(columns, rows, options).join('\n')}\n`);
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
  else printTable(cli, list.columns, list.items);
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
