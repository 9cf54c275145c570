// The events of one commit as bytes, one row of the log: for each event the key's length (2 bytes) and bytes, the
// value's length (4 bytes, all ones for a delete) and bytes. The caller of the decoder has checked the row's checksum.

import { assert } from '../base/assert.ts';
import type { Key, Revision, WatchEvent } from './store.ts';

const deleted = 0xffff_ffff;

export interface Change {
  readonly key: Key;
  readonly value: Uint8Array | null;
}

export function encodeEvents(events: readonly Change[]): Buffer {
  const bytes = Buffer.allocUnsafe(eventsBytes(events));
  writeEvents(events, bytes, 0);
  return bytes;
}

/** Their size in bytes. */
export function eventsBytes(events: readonly Change[]): number {
  let size = 0;
  for (const { key, value } of events) size += 6 + key.length + (value?.byteLength ?? 0);
  return size;
}

/** Returns the offset after them. */
export function writeEvents(events: readonly Change[], bytes: Buffer, start: number): number {
  let at = start;
  for (const { key, value } of events) {
    at = bytes.writeUInt16BE(key.length, at);
    at += bytes.write(key, at, 'latin1');
    at = bytes.writeUInt32BE(value === null ? deleted : value.byteLength, at);
    if (value === null) continue;
    bytes.set(value, at);
    at += value.byteLength;
  }
  return at;
}

/** The events whose key starts with `prefix`; values are copies, so that none keeps its whole commit in memory. */
export function decodeEvents(bytes: Buffer, revision: Revision, prefix: string): WatchEvent[] {
  const events: WatchEvent[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    const keyEnd = at + 2 + bytes.readUInt16BE(at);
    const key = bytes.toString('latin1', at + 2, keyEnd);
    const length = bytes.readUInt32BE(keyEnd);
    const end = keyEnd + 4 + (length === deleted ? 0 : length);
    assert(end <= bytes.byteLength, `the events of revision ${revision} end inside "${key}"`);
    if (key.startsWith(prefix)) {
      const value = length === deleted ? null : new Uint8Array(bytes.subarray(keyEnd + 4, end));
      events.push({ key, value, revision });
    }
    at = end;
  }
  return events;
}
