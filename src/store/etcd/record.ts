// One record of the log as bytes: the commits of one batch, with consecutive revisions. Events too large for one request are in
// parts beside it. It does not use etcd.
//
//   version (1), id of the batch (16), first revision (6), number of commits (4), number of parts (4), checksum of the events (4),
//   bytes of each commit's events (4 each), checksum of all this (4), then the events when there are no parts

import { crc32 } from 'node:zlib';
import { decodeEvents, eventsBytes, writeEvents } from '../event-codec.ts';
import type { LoggedCommit } from '../shared-log.ts';
import type { Key, Revision } from '../store.ts';
import { partBytes, requestBytesMax } from './layout.ts';

const version = 1;
const fixedBytes = 35;

/** The events of a batch, without revisions. */
export interface Payload {
  readonly lengths: readonly number[];
  readonly bytes: Buffer;
  /** 0: it fits into the record. */
  readonly parts: number;
}

export interface RecordHeader {
  readonly id: string;
  readonly first: Revision;
  readonly last: Revision;
  readonly lengths: readonly number[];
  readonly parts: number;
  readonly checksum: number;
  /** When it has no parts. */
  readonly inline: Buffer;
}

export function encodePayload(commits: readonly LoggedCommit[]): Payload {
  const lengths = commits.map(({ events }) => eventsBytes(events));
  const bytes = Buffer.allocUnsafe(sumOf(lengths));
  let at = 0;
  for (const { events } of commits) at = writeEvents(events, bytes, at);
  const fits = fixedBytes + 4 * lengths.length + bytes.byteLength + 2 * 1024 <= requestBytesMax;
  return { lengths, bytes, parts: fits ? 0 : Math.ceil(bytes.byteLength / partBytes) };
}

/** In pieces, so that the events are not copied. */
export function encodeRecord(id: string, first: Revision, payload: Payload): readonly Uint8Array[] {
  const { lengths, bytes, parts } = payload;
  const head = Buffer.allocUnsafe(fixedBytes + 4 * lengths.length + 4);
  head.writeUInt8(version, 0);
  head.write(id, 1, 'hex');
  head.writeUIntBE(first, 17, 6);
  head.writeUInt32BE(lengths.length, 23);
  head.writeUInt32BE(parts, 27);
  head.writeUInt32BE(crc32(bytes), 31);
  let at = fixedBytes;
  for (const length of lengths) at = head.writeUInt32BE(length, at);
  head.writeUInt32BE(crc32(head.subarray(0, at)), at);
  return parts === 0 ? [head, bytes] : [head];
}

/** undefined: damaged. */
export function decodeHeader(record: Buffer): RecordHeader | undefined {
  if (record.byteLength < fixedBytes + 4 || record.readUInt8(0) !== version) return undefined;
  const count = record.readUInt32BE(23);
  const end = fixedBytes + 4 * count;
  if (count === 0 || end + 4 > record.byteLength || record.readUInt32BE(end) !== crc32(record.subarray(0, end)))
    return undefined;
  const first = record.readUIntBE(17, 6);
  return {
    id: record.toString('hex', 1, 17),
    first,
    last: first + count - 1,
    lengths: Array.from({ length: count }, (_, i) => record.readUInt32BE(fixedBytes + 4 * i)),
    parts: record.readUInt32BE(27),
    checksum: record.readUInt32BE(31),
    inline: record.subarray(end + 4),
  };
}

/** The commits of a record with the events `bytes`; undefined: damaged. */
export function decodeCommits(header: RecordHeader, bytes: Buffer): LoggedCommit[] | undefined {
  if (crc32(bytes) !== header.checksum || bytes.byteLength !== sumOf(header.lengths)) return undefined;
  let at = 0;
  return header.lengths.map((length, i) => {
    const revision = header.first + i;
    const events = decodeEvents(bytes.subarray(at, at + length), revision, '');
    at += length;
    return { revision, events };
  });
}

/** The offset of the last value of each key in the events of a batch, for values that `wanted` selects. */
export function offsetsIn(
  commits: readonly LoggedCommit[],
  wanted: (value: Uint8Array) => boolean,
): Map<Key, { readonly offset: number; readonly length: number }> {
  const found = new Map<Key, { offset: number; length: number }>();
  let at = 0;
  for (const { events } of commits)
    for (const { key, value } of events) {
      at += 6 + key.length;
      found.delete(key);
      if (value === null) continue;
      if (wanted(value)) found.set(key, { offset: at, length: value.byteLength });
      at += value.byteLength;
    }
  return found;
}

function sumOf(lengths: readonly number[]): number {
  return lengths.reduce((sum, each) => sum + each, 0);
}
