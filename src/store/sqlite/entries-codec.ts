// Many entries in one piece of bytes, to pass them from the thread that reads them: cloned one by one, each value would
// be an allocation in both threads. Both sides run the same program, so there is no version.

import type { Entry } from '../store.ts';

/**
 * Each: key length (2 bytes) and key, revision (8), value length (4) and value. The bytes have a buffer of their own,
 * which can be transferred.
 */
export function encodeEntries(entries: readonly Entry[]): Uint8Array<ArrayBuffer> {
  let size = 0;
  for (const { key, value } of entries) size += 14 + key.length + value.byteLength;
  const bytes = Buffer.from(new ArrayBuffer(size));
  let at = 0;
  for (const { key, value, revision } of entries) {
    at = bytes.writeUInt16LE(key.length, at);
    at += bytes.write(key, at, 'latin1');
    at = bytes.writeDoubleLE(revision, at);
    at = bytes.writeUInt32LE(value.byteLength, at);
    bytes.set(value, at);
    at += value.byteLength;
  }
  return bytes;
}

/** The values are views of `encoded`. */
export function decodeEntries(encoded: Uint8Array): Entry[] {
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength);
  const entries: Entry[] = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const keyEnd = at + 2 + bytes.readUInt16LE(at);
    const key = bytes.toString('latin1', at + 2, keyEnd);
    const revision = bytes.readDoubleLE(keyEnd);
    const start = keyEnd + 12;
    const length = bytes.readUInt32LE(keyEnd + 8);
    entries.push({ key, value: new Uint8Array(bytes.buffer, bytes.byteOffset + start, length), revision });
    at = start + length;
  }
  return entries;
}
