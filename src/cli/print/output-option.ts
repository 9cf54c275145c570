// `-o`, the same for every command with output for programs.

import { Option } from 'commander';
import { type Format, parseFormat, parseValueFormat } from './output.ts';

/** `list`: named items in columns; `one`: one named item; `value`: anything else. */
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
