// Records as bytes and back. Old forms are upgraded here, newer ones refused: a server must not half-understand its store.

import { isRecord } from '../../base/is-record.ts';
import type { AnyRecord } from './records.ts';
import { shareParts } from './share-parts.ts';
import { schemaVersion, upgraded } from './upgrade.ts';

/** Thrown for a record that a newer Berth wrote, or that is not one. */
export class UnreadableRecord extends Error {
  override name = 'UnreadableRecord';
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A view of a piece of memory that it shares with its neighbours, for a piece of its own for each costs more than writing it. */
export function encodeRecord(record: AnyRecord): Uint8Array {
  const text = JSON.stringify(record);
  if (text.length * bytesPerUnitMax > block.length - used) {
    block = new Uint8Array(Math.max(blockBytes, text.length * bytesPerUnitMax));
    used = 0;
  }
  const { written } = encoder.encodeInto(text, block.subarray(used));
  const bytes = block.subarray(used, used + written);
  used += written;
  return bytes;
}

const blockBytes = 64 * 1024;
/** UTF-8 takes at most three bytes for one unit of UTF-16. */
const bytesPerUnitMax = 3;
let block = new Uint8Array(0);
let used = 0;

export function decodeRecord(key: string, bytes: Uint8Array): AnyRecord {
  let parsed: unknown;
  try {
    parsed = JSON.parse(decoder.decode(bytes));
  } catch (cause) {
    throw new UnreadableRecord(`the record at ${key} is not JSON; the store has been changed by something else`, {
      cause,
    });
  }
  return recordOf(key, parsed);
}

/** What is stored under a key. */
interface Encoded {
  readonly key: string;
  readonly value: Uint8Array;
}

/** As `decodeRecord` does it, but dozens at a time: V8 reads an object faster that follows others of its kind in an array. */
export function decodeRecords<E extends Encoded>(
  entries: readonly E[],
  take: (entry: E, record: AnyRecord) => void,
): void {
  for (let from = 0, to = 0; from < entries.length; from = to) {
    to = fittingFrom(entries, from);
    const some = entries.slice(from, to);
    const parsed = parsedTogether(some);
    let at = 0;
    for (const entry of some) {
      take(entry, parsed ? recordOf(entry.key, parsed[at]) : decodeRecord(entry.key, entry.value));
      at += 1;
    }
  }
}

/** What lies in the processor's cache is not fetched twice. */
const joined = new Uint8Array(128 * 1024);
const [opening, comma, closing] = [0x5b, 0x2c, 0x5d];

/** Where those from `from` on end that go together: one at least. */
function fittingFrom(entries: readonly Encoded[], from: number): number {
  let bytes = 1;
  for (let to = from; ; to++) {
    bytes += 1 + (entries[to]?.value.byteLength ?? Number.POSITIVE_INFINITY);
    if (bytes > joined.byteLength) return Math.max(to, from + 1);
  }
}

/** Undefined: it is one alone, or one of them is not JSON, and whoever reads them one by one finds out which. */
function parsedTogether(some: readonly Encoded[]): readonly unknown[] | undefined {
  if (some.length < 2) return undefined;
  let at = 0;
  for (const { value } of some) {
    joined[at] = at === 0 ? opening : comma;
    joined.set(value, at + 1);
    at += 1 + value.byteLength;
  }
  joined[at] = closing;
  try {
    const parsed: unknown = JSON.parse(decoder.decode(joined.subarray(0, at + 1)));
    return Array.isArray(parsed) && parsed.length === some.length ? parsed : undefined;
  } catch {
    return undefined;
  }
}

function recordOf(key: string, record: unknown): AnyRecord {
  if (typeof record !== 'object' || record === null || !('kind' in record)) {
    throw new UnreadableRecord(`the record at ${key} has no kind; the store has been changed by something else`);
  }
  if ('schemaVersion' in record && typeof record.schemaVersion === 'number' && record.schemaVersion > schemaVersion) {
    throw new UnreadableRecord(
      `the record at ${key} has schema version ${record.schemaVersion}, this Berth knows ${schemaVersion}: start the newer version`,
    );
  }
  const present: unknown = isRecord(record) ? upgraded(record) : record;
  if (isRecord(present)) shareParts(present);
  return present as AnyRecord; // the codec: only core/state writes records
}
