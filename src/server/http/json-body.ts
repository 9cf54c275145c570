// Parses a JSON body strictly, and refuses what two parsers could understand differently: keys given twice (RFC 8259 leaves open
// which one counts), keys that could reach a prototype, nesting without end, and halves of characters, which no UTF-8 can carry on.

import { isRecord } from '../../base/is-record.ts';
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
  // A key that was given twice is in the text twice, and in the value once.
  if (keysIn(value, 0) !== colonsIn(text)) assertStrict(text);
  if (surrogateEscape.test(text)) assertWellFormed(value, '');
  return value;
}

/** Half of a character can only come as an escape: the text itself was UTF-8. */
const surrogateEscape = /\\u[dD][89a-fA-F]/;

/** Throws `InvalidRequest`, naming the field. */
function assertWellFormed(value: unknown, field: string): void {
  if (typeof value === 'string') {
    if (value.isWellFormed()) return;
    throw new ApiError('InvalidRequest', `${field || 'the body'} has half of a UTF-16 surrogate pair`, {
      field: field || 'body',
    });
  }
  if (Array.isArray(value)) for (const [i, item] of value.entries()) assertWellFormed(item, `${field}[${i}]`);
  else if (isRecord(value))
    for (const [key, item] of Object.entries(value)) {
      const path = field === '' ? key : `${field}.${key}`;
      assertWellFormed(key, (field || 'body').slice(0, 200));
      assertWellFormed(item, path.slice(0, 200));
    }
}

/** Number of keys of the value, nested ones included. Throws `InvalidRequest` for a refused key, and for too deep nesting. */
function keysIn(value: unknown, depth: number): number {
  let count = 0;
  if (Array.isArray(value)) {
    if (depth === depthMax) throw tooDeep();
    for (const item of value) count += keysIn(item, depth + 1);
  } else if (isRecord(value)) {
    if (depth === depthMax) throw tooDeep();
    for (const key in value) {
      if (refusedKeys.has(key)) throw refused(key);
      count += 1 + keysIn(value[key], depth + 1);
    }
  }
  return count;
}

const quote = 0x22;
const backslash = 0x5c;
const colon = 0x3a;

/** Those outside strings, of text that is known to be JSON: one behind each key. */
function colonsIn(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === colon) count += 1;
    else if (unit === quote) at = endOfString(text, at);
  }
  return count;
}

/** Where the string ends that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === backslash) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
}

/** Walks the tokens of text that is known to be JSON, and names the key that is given twice. */
function assertStrict(text: string): void {
  const open: (Set<string> | 'array')[] = [];
  for (const [token, key] of tokensOf(text)) {
    if (key !== undefined) assertKey(open.at(-1), key);
    else if (token === '{') open.push(new Set());
    else if (token === '[') open.push('array');
    else open.pop();
    if (open.length > depthMax) throw tooDeep();
  }
}

function assertKey(place: Set<string> | 'array' | undefined, key: string): void {
  if (refusedKeys.has(key)) throw refused(key);
  if (place === undefined || place === 'array') return;
  const field = key.slice(0, 80);
  if (place.has(key)) throw new ApiError('InvalidRequest', `the field "${field}" is given twice`, { field });
  place.add(key);
}

function refused(key: string): ApiError {
  return new ApiError('InvalidRequest', `the field name "${key}" is not taken`, { field: key });
}

function tooDeep(): ApiError {
  return new ApiError('InvalidRequest', `the body is nested deeper than ${depthMax}`, { field: 'body' });
}

/** Brackets, and strings that are keys (followed by a colon). Linear in the text. */
function* tokensOf(text: string): Iterable<readonly [token: string, key?: string]> {
  const pattern = /[{}[\]]|"(?:[^"\\]|\\.)*"(\s*:)?/g;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const [token, colonAfter] = match;
    if (!token.startsWith('"')) yield [token];
    else if (colonAfter !== undefined) yield [token, String(JSON.parse(token.slice(0, token.lastIndexOf('"') + 1)))];
  }
}
