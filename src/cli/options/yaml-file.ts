// Reads a small YAML file as plain JSON data. Strict: no aliases (they can expand exponentially), no tags, no duplicate
// keys, at most 1 MiB.

import type { YAMLError } from 'yaml';
import { describeError } from '../../base/log.ts';
import { CommandError, usageError } from '../exit-codes.ts';
import { readTextFile } from './read-file.ts';

const bytesMax = 1024 * 1024;
const nothing: AsyncIterable<string> = { async *[Symbol.asyncIterator]() {} };

export async function readYamlFile(path: string, what: string): Promise<unknown> {
  return parseYaml(await readTextFile({ stdin: nothing }, path, { what, bytesMax }), path);
}

/** Throws `CommandError` that names the file and the line. */
export async function parseYaml(text: string, path: string): Promise<unknown> {
  const { parseDocument } = await import('yaml');
  try {
    const document = parseDocument(text, { strict: true, uniqueKeys: true, schema: 'core', prettyErrors: true });
    const fault = document.errors[0] ?? document.warnings[0];
    // The library's call stack overflowed; no valid file is a tenth as deep.
    if (fault?.code === 'RESOURCE_EXHAUSTION') throw new Error('it is nested too deep');
    if (fault) throw usageError(`cannot read ${faultText(fault, path)}`);
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw usageError(`cannot read ${path}: ${describeError(error).trim()}`);
  }
}

/** `FILE:LINE:COLUMN: fault`, without the library's excerpt of the file. */
export function faultText({ message, linePos }: YAMLError, path: string): string {
  const [first = ''] = message.split('\n');
  const place = linePos === undefined ? '' : `${linePos[0].line}:${linePos[0].col}:`;
  return `${path}:${place} ${first.replace(/ at line \d+, column \d+:$/, '')}`;
}
