// Commits as bytes, to pass them to the thread that writes: cloning thousands of small objects would cost more than
// writing them. Both sides run the same program, so there is no version. The bytes are mostly in shared memory that
// neither side changes after encoding.

import type { Condition, Write } from '../store.ts';
import type { CommitRequest } from './sqlite-writer.ts';

const deleted = 0xffff_ffff;

/**
 * Larger average values are copied between the threads instead: shared memory does not count towards V8's triggers for
 * garbage collection, and the other thread, which creates little garbage, would keep much of it unused.
 */
const sharedValueBytesMax = 32 * 1024;

/** One request as passed between the threads. */
export type RequestBytes = Uint8Array;

/** A copy of a request, and its writes with their values as views of that copy. */
export function encodeRequest(
  conditions: readonly Condition[],
  writes: readonly Write[],
): { readonly bytes: RequestBytes; readonly writes: readonly Write[] } {
  const size = sizeOf(conditions, writes);
  const shared = size <= sharedValueBytesMax * writes.length;
  const bytes = shared ? Buffer.from(new SharedArrayBuffer(size)) : Buffer.allocUnsafeSlow(size);
  let at = bytes.writeUInt32LE(conditions.length, 0);
  for (const { key, ifRevision } of conditions) {
    at = bytes.writeUInt16LE(key.length, at);
    at += bytes.write(key, at, 'latin1');
    at = bytes.writeDoubleLE(ifRevision, at);
  }
  at = bytes.writeUInt32LE(writes.length, at);
  const copies = writes.map(({ key, value }): Write => {
    at = bytes.writeUInt16LE(key.length, at);
    at += bytes.write(key, at, 'latin1');
    at = bytes.writeUInt32LE(value === null ? deleted : value.byteLength, at);
    if (value === null) return { key, value };
    bytes.set(value, at);
    at += value.byteLength;
    return { key, value: new Uint8Array(bytes.buffer, at - value.byteLength, value.byteLength) };
  });
  return { bytes, writes: copies };
}

function sizeOf(conditions: readonly Condition[], writes: readonly Write[]): number {
  let size = 8;
  for (const { key } of conditions) size += 10 + key.length;
  for (const { key, value } of writes) size += 6 + key.length + (value?.byteLength ?? 0);
  return size;
}

/** The values are views of `request`. */
export function decodeRequest(request: RequestBytes): CommitRequest {
  const bytes = Buffer.from(request.buffer, request.byteOffset, request.byteLength);
  let at = 0;
  const count = (): number => {
    at += 4;
    return bytes.readUInt32LE(at - 4);
  };
  const key = (): string => {
    const start = at + 2;
    at = start + bytes.readUInt16LE(at);
    return bytes.toString('latin1', start, at);
  };
  const conditions: Condition[] = [];
  for (let left = count(); left > 0; left--) {
    conditions.push({ key: key(), ifRevision: bytes.readDoubleLE(at) });
    at += 8;
  }
  const writes: Write[] = [];
  for (let left = count(); left > 0; left--) {
    const written = key();
    const length = count();
    if (length === deleted) writes.push({ key: written, value: null });
    else {
      writes.push({ key: written, value: bytes.subarray(at, at + length) });
      at += length;
    }
  }
  return { conditions, writes };
}
