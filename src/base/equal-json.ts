// Structural equality of JSON. Records may share parts, but whether they do is chance and must not decide anything.

import { isRecord } from './is-record.ts';

/** Structural equality of JSON data; the order of keys does not matter. */
export function equalJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((each, i) => equalJson(each, b[i]));
  if (!isRecord(a) || !isRecord(b)) return false;
  let more = 0;
  for (const key in b) if (b[key] !== undefined) more += 1;
  for (const key in a) {
    if (a[key] === undefined) continue;
    if (!Object.hasOwn(b, key) || !equalJson(a[key], b[key])) return false;
    more -= 1;
  }
  return more === 0;
}
