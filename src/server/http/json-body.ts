// A JSON body, read strictly: what two readers could understand differently is refused. Keys given twice (RFC 8259 leaves open
// which one counts), keys that could reach a prototype, and nesting without end.

import { ApiError } from '../../api/errors.ts';

/** Deeper than any resource; far from where a recursive reader would fail. */
const depthMax = 32;
const refusedKeys: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** The value; undefined for an empty body. Throws `InvalidRequest`. */
export function parseJsonBody(text: string): unknown {
  if (text.length === 0) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ApiError('InvalidRequest', 'the body is not JSON', { field: 'body', cause });
  }
  assertStrict(text);
  return value;
}

/** Walks the tokens of text that is known to be JSON. */
function assertStrict(text: string): void {
  const open: (Set<string> | 'array')[] = [];
  for (const [token, key] of tokensOf(text)) {
    if (key !== undefined) assertKey(open.at(-1), key);
    else if (token === '{') open.push(new Set());
    else if (token === '[') open.push('array');
    else open.pop();
    if (open.length > depthMax)
      throw new ApiError('InvalidRequest', `the body is nested deeper than ${depthMax}`, { field: 'body' });
  }
}

function assertKey(place: Set<string> | 'array' | undefined, key: string): void {
  const field = key.slice(0, 80);
  if (refusedKeys.has(key)) throw new ApiError('InvalidRequest', `the field name "${field}" is not taken`, { field });
  if (place === undefined || place === 'array') return;
  if (place.has(key)) throw new ApiError('InvalidRequest', `the field "${field}" is given twice`, { field });
  place.add(key);
}

/** Brackets, and strings that are keys (followed by a colon). Linear in the text. */
function* tokensOf(text: string): Iterable<readonly [token: string, key?: string]> {
  const pattern = /[{}[\]]|"(?:[^"\\]|\\.)*"(\s*:)?/g;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const [token, colon] = match;
    if (!token.startsWith('"')) yield [token];
    else if (colon !== undefined) yield [token, String(JSON.parse(token.slice(0, token.lastIndexOf('"') + 1)))];
  }
}
