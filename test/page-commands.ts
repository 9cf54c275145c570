// The commands of a document, for tests that follow it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

interface Section {
  /** The file below docs/. */
  readonly page: string;
  /** Of level two. */
  readonly heading: string;
  /** What its commands stand after: `$` of a user, `#` of root. */
  readonly prompt: '$' | '#';
}

/** The commands of a section, in order. Throws when there are none. */
export function pageCommands({ page, heading, prompt }: Section): string[] {
  const text = readFileSync(join(import.meta.dirname, '../docs', page), 'utf8');
  const section = text.split(/^## /m).find((each) => each.startsWith(`${heading}\n`)) ?? '';
  const commands = section
    .split('\n')
    .filter((line) => line.startsWith(`${prompt} `))
    .map((line) => line.slice(2));
  assert(commands.length > 0, `docs/${page} has no commands below "${heading}"`);
  return commands;
}
