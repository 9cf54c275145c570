// Interns the parts that stored records have in common: a fleet holds the same host names, reasons, specs and amounts
// half a million times. Invisible to readers, because records are never changed in place. The tables here are bounded,
// are cleared when full and change no answer.

import type { Amounts } from '../../api/resources/metadata.ts';
import { isRecord } from '../../base/is-record.ts';
import { heldOfOne } from './held-of-one.ts';
import type { AnyRecord } from './records.ts';

/**
 * Maximum number of different values remembered; the tables are cleared when full. Records written together are read
 * together, so few suffice.
 */
const rememberedMax = 20_000;
/** V8 itself keeps one copy of texts up to this length when it parses JSON. */
const internalizedMax = 10;
/** Longer texts are unique. */
const textLengthMax = 80;
const partLengthMax = 2_000;
const texts = new Map<string, string>();
const parts = new Map<string, unknown>();

/** Replaces the texts and parts of a newly decoded record with equal ones seen before. */
export function shareParts(record: AnyRecord): void {
  if (!isOwn(record)) shareTexts(record as unknown as Record<string, unknown>); // the codec
}

/** Read rarely, and soon deleted. */
function isOwn({ kind }: { readonly kind?: unknown }): boolean {
  return kind === 'event' || kind === 'idempotency';
}

function keptText(name: string, text: string): string {
  const isShared = text.length > internalizedMax && text.length <= textLengthMax && name !== '' && !unlike.has(name);
  return isShared ? sharedText(text) : text;
}

function shareTexts(place: Record<string, unknown>): void {
  for (const name in place) {
    const value = place[name];
    if (typeof value === 'string') {
      place[name] = keptText(name, value);
    } else if (typeof value !== 'object' || value === null || ownParts.has(name)) {
      continue;
    } else if (Array.isArray(value)) {
      if (value.length === 0) place[name] = none;
      else if (sharedNames.has(name)) place[name] = sharedPart(value, name);
      else for (const item of value) if (isRecord(item)) shareTexts(item);
    } else if (isRecord(value)) {
      if (sharedNames.has(name)) place[name] = sharedPart(value, name);
      else if (name === 'amounts') place[name] = sharedHeld(value);
      else shareTexts(value);
    }
  }
}

/** Fields with a text unique to the instance: a lookup costs more than it saves. */
const unlike: ReadonlySet<string> = new Set(['id', 'name', 'address']);
/** Parts that share only numbers and short words with others. */
const ownParts: ReadonlySet<string> = new Set(['phases', 'report']);
/** Parts that many records have in common. */
const sharedNames: ReadonlySet<string> = new Set([
  'spec',
  'placement',
  'labels',
  'assigned',
  'capacity',
  'inventories',
  'traits',
  'drivers',
]);
/** By provider id, then resource class. */
function sharedHeld(held: Record<string, unknown>): unknown {
  const shared = Object.entries(held).map(([provider, amounts]) => [provider, sharedPart(amounts, 'amounts')] as const);
  const [[provider, amounts] = []] = shared;
  return shared.length === 1 && provider !== undefined && isAmounts(amounts)
    ? heldOfOne(provider, amounts)
    : Object.fromEntries(shared);
}

/** The codec: it stands where allocations have them. */
function isAmounts(part: unknown): part is Amounts {
  return isRecord(part);
}

const none: readonly never[] = Object.freeze([]);

function sharedText(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= rememberedMax) texts.clear();
  texts.set(text, text);
  return text;
}

function sharedPart(part: unknown, name: string): unknown {
  const last = lastParts.get(name);
  if (last !== undefined && sameText(last, part)) return last;
  const text = JSON.stringify(part);
  if (text.length > partLengthMax) return part;
  let shared = parts.get(text);
  if (shared === undefined) {
    shared = part;
    if (parts.size >= rememberedMax) parts.clear();
    parts.set(text, part);
  }
  lastParts.set(name, shared);
  return shared;
}

/** By name: parts decoded one after the other are often equal, and a comparison is faster than writing them as text. */
const lastParts = new Map<string, unknown>();

/** Whether two pieces of JSON have the same text, with their keys in the same order. */
function sameText(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((each, i) => sameText(each, b[i]));
  if (!isRecord(a) || !isRecord(b)) return false;
  const others = Object.keys(b);
  let at = 0;
  for (const key in a) {
    if (key !== others[at] || !sameText(a[key], b[key])) return false;
    at += 1;
  }
  return at === others.length;
}
