// What records that were read have in common is kept once: a fleet holds the same host names, reasons, specs and amounts half a million
// times. It changes nothing that anyone can see, for nobody changes a record in place.

import { isRecord } from '../../base/is-record.ts';
import type { AnyRecord } from './records.ts';

/** As many different ones are remembered; then it begins anew. Records written together are read together, so few suffice. */
const rememberedMax = 20_000;
/** Longer texts are nobody else's. */
const textLengthMax = 80;
const texts = new Map<string, string>();
const parts = new Map<string, unknown>();

/** `record`, new from its bytes, with its texts and its parts replaced by equal ones seen before. */
export function shareParts(record: AnyRecord): AnyRecord {
  if (record.kind === 'event' || record.kind === 'idempotency') return record; // seldom looked at, and soon gone
  return shareTexts(record);
}

function shareTexts<T extends object>(place: T): T {
  for (const name in place) {
    const value: unknown = place[name];
    if (typeof value === 'string') {
      if (value.length <= textLengthMax) Reflect.set(place, name, sharedText(value));
    } else if (Array.isArray(value)) {
      if (value.length === 0) Reflect.set(place, name, none);
      else for (const [i, item] of value.entries()) if (isRecord(item)) value[i] = shareTexts(item);
    } else if (name === 'amounts' && isRecord(value)) {
      for (const [provider, held] of Object.entries(value)) if (isRecord(held)) value[provider] = sharedPart(held);
    } else if (isRecord(value)) Reflect.set(place, name, sharedNames.has(name) ? sharedPart(value) : shareTexts(value));
  }
  return place;
}

/** Parts that many records have alike. */
const sharedNames: ReadonlySet<string> = new Set([
  'spec',
  'placement',
  'labels',
  'assigned',
  'capacity',
  'inventories',
]);
const none: readonly never[] = Object.freeze([]);

function sharedText(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= rememberedMax) texts.clear();
  texts.set(text, text);
  return text;
}

function sharedPart(part: object): unknown {
  const text = JSON.stringify(part);
  if (text.length > 2_000) return part; // user-data and keys: nobody else's
  const known = parts.get(text);
  if (known !== undefined) return known;
  if (parts.size >= rememberedMax) parts.clear();
  parts.set(text, shareTexts(part));
  return part;
}
