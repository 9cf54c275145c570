// `-o`, the same on every command that prints something for programs, too.

import { Option } from 'commander';
import { type Format, parseFormat, parseValueFormat } from './output.ts';

/** `list`: things with names, in columns; `one`: one such thing; `value`: neither. */
export type Printed = 'list' | 'one' | 'value';

const choices: Readonly<Record<Printed, string>> = {
  list: 'table, wide, json, yaml or name',
  one: 'table, json, yaml or name',
  value: 'table, json or yaml',
};

export function outputOption(printed: Printed, usual: Format = 'table'): Option {
  return new Option('-o, --output <format>', choices[printed])
    .argParser(printed === 'value' ? parseValueFormat : parseFormat)
    .default(usual);
}
