// JSON of which equal values have one text: for digests, and to compare requests.

import { isRecord } from '../is-record.ts';

/** Keys in the order of their code units, at every depth. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isRecord(value)) return JSON.stringify(value);
  const sorted = Object.keys(value).sort();
  return `{${sorted.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`).join(',')}}`;
}
