// Reads a small YAML file as plain JSON data. Strict: no aliases (they can expand exponentially), no tags, no duplicate
// keys, at most 1 MiB.

import { describeError } from '../../base/log.ts';
import { usageError } from '../exit-codes.ts';
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
    if (fault) throw fault;
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    throw usageError(`cannot read ${path}: ${describeError(error).trim()}`);
  }
}
