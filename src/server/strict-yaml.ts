// A small YAML file as plain data whose every value knows its line. Never follows aliases (they can blow up), never obeys tags,
// never takes a key twice.

import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { ApiError } from '../api/errors.ts';
import { mebibyte } from '../base/bytes.ts';
import { describeError } from '../base/log.ts';

export type YamlValue = string | number | boolean | null | readonly YamlValue[] | { readonly [key: string]: YamlValue };

export interface YamlFile {
  readonly value: YamlValue;
  /** Ends the reading: an `ApiError` `InvalidRequest` that tells line and column of what stands at `path`. */
  fault(path: readonly string[], message: string): ApiError;
}

const usualBytesMax = mebibyte;
const depthMax = 32;
const tooDeep = `nested deeper than ${depthMax} levels`;

/** `what` names the file in messages: "the image map". Throws `ApiError` `InvalidRequest` with line and column. */
export function parseStrictYaml(text: string, what: string, { bytesMax = usualBytesMax } = {}): YamlFile {
  if (text.length > bytesMax || Buffer.byteLength(text) > bytesMax) {
    throw new ApiError(
      'InvalidRequest',
      `cannot read ${what}: it is larger than ${bytesMax / mebibyte} MiB; split it or remove what is not used`,
    );
  }
  const lines = new LineCounter();
  const refuse = (offset: number, message: string, field?: string): ApiError => {
    const { line, col } = lines.linePos(offset);
    return new ApiError('InvalidRequest', `cannot read ${what}: line ${line}, column ${col}: ${message}`, {
      ...(field === undefined || field === '' ? {} : { field }),
      details: { line, column: col },
    });
  };
  const document = parse(text, lines, what);
  const broken = document.errors[0] ?? document.warnings[0];
  // The library's call stack ended, far below what is taken.
  if (broken?.code === 'RESOURCE_EXHAUSTION') throw refuse(broken.pos[0], tooDeep);
  if (broken) throw refuse(broken.pos[0], broken.message.split('\n')[0]?.replace(/ at line \d+.*$/, '') ?? 'not YAML');

  const offsets = new Map<string, number>();
  const read = (node: unknown, path: readonly string[], offset: number): YamlValue => {
    offsets.set(path.join('\n'), offset);
    if (node === null || node === undefined) return null;
    if (path.length > depthMax) throw refuse(offset, tooDeep);
    if (isAlias(node)) throw refuse(startOf(node, offset), 'aliases (*name) are not allowed; write the value out');
    if (isScalar(node) || isMap(node) || isSeq(node)) {
      const start = startOf(node, offset);
      if (node.anchor !== undefined)
        throw refuse(start, `anchors (&${node.anchor}) are not allowed; write the value out`);
      if (node.tag !== undefined) throw refuse(start, `tags (${node.tag}) are not allowed`);
    }
    if (isScalar(node)) {
      const value = node.value;
      if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
      if (typeof value === 'number' && Number.isFinite(value)) return value;
      throw refuse(startOf(node, offset), 'not a plain string, number or boolean');
    }
    if (isSeq(node))
      return node.items.map((item, index) => read(item, [...path, String(index)], startOf(item, offset)));
    if (isMap(node)) {
      const entries: [string, YamlValue][] = [];
      for (const { key, value } of node.items) {
        const start = startOf(key, offset);
        if (isAlias(key) || (isScalar(key) && (key.anchor !== undefined || key.tag !== undefined)))
          throw refuse(start, 'a key may not have an anchor, alias or tag');
        if (!isScalar(key) || typeof key.value !== 'string') throw refuse(start, 'a key must be a string; quote it');
        if (key.value === '<<') throw refuse(start, 'merge keys (<<) are not allowed; write the keys out');
        entries.push([key.value, read(value, [...path, key.value], start)]);
      }
      return Object.fromEntries(entries);
    }
    throw refuse(offset, 'not plain data');
  };
  const value = read(document.contents, [], 0);
  return {
    value,
    fault: (path, message) => refuse(offsets.get(path.join('\n')) ?? 0, message, path.join('.')),
  };
}

function parse(text: string, lineCounter: LineCounter, what: string): Document {
  try {
    return parseDocument(text, {
      lineCounter,
      strict: true,
      uniqueKeys: true,
      schema: 'core',
      version: '1.2',
      prettyErrors: true,
    });
  } catch (error) {
    throw new ApiError('InvalidRequest', `cannot read ${what}: ${describeError(error)}`, { cause: error });
  }
}

function startOf(node: unknown, otherwise: number): number {
  const range = (node as Partial<Node> | null)?.range; // any node of the library, or none
  return range?.[0] ?? otherwise;
}
