// The layout of the store in etcd, and the encoding of small records and entries. Format 1; data of a newer Berth is refused.
//
//   PREFIX/head              {"format":1,"revision":12}   put in every commit: what all writers compare
//   PREFIX/log/0..012        the commits of one batch, by the last of their revisions (record.ts)
//   PREFIX/part/ID/0         a piece of a record too large for one request
//   PREFIX/parted/0..012     ID, and the keys whose values are left in its parts: one line each
//   PREFIX/entry/KEY         revision and value, or where in which parts the value is
//   PREFIX/waiting/ID        a process that has lost races requests a turn (log-writer.ts)
//   PREFIX/applied           the revision up to which the entries have certainly followed the log
//   PREFIX/compacted         the first revision with events, and etcd's revision when this was written

import { crc32 } from 'node:zlib';
import { isRecord } from '../../base/is-record.ts';
import { type Key, type Revision, StoreError } from '../store.ts';
import { endOfPrefix } from '../check-request.ts';
import { corrupt } from './etcd-errors.ts';
import type { AnsweredKeyValue, KeyValue } from './answers.ts';
import type { Compare, RangeRequest } from './requests.ts';

const format = 1;

/** Below etcd's default limit for a request (1.5 MiB), with room for keys and frames. */
export const requestBytesMax = 1024 * 1024;
export const partBytes = requestBytesMax - 4096;
/** A value of at least this size that arrived in parts stays in the parts of its record. */
const leftInPartsMin = 256 * 1024;

/** The location of a value in the parts of a record. */
export interface Place {
  /** 32 hex digits. */
  readonly id: string;
  readonly offset: number;
  readonly length: number;
}

/** An entry as stored in etcd. */
export interface StoredEntry {
  readonly key: Key;
  readonly revision: Revision;
  readonly value: Uint8Array | Place;
  readonly checksum: number;
}

export type Layout = ReturnType<typeof layoutOf>;

export function layoutOf(prefix: string) {
  const at = (path: string): Buffer => Buffer.from(`${prefix}/${path}`, 'latin1');
  const span = (start: string, end: string): Pick<RangeRequest, 'key' | 'rangeEnd'> => ({
    key: at(start),
    rangeEnd: at(end),
  });
  const logEnd = at('log/\x7f');
  const entryAt = `${prefix}/entry/`.length;
  return {
    head: at('head'),
    applied: at('applied'),
    compacted: at('compacted'),
    record: (last: Revision): Buffer => at(`log/${digits(last)}`),
    /** The records that end at `first` or later, and below `end`. */
    records: (first: Revision, end?: Revision) => ({
      key: at(`log/${digits(first)}`),
      rangeEnd: end === undefined ? logEnd : at(`log/${digits(end)}`),
    }),
    revisionOfRecord: (key: Buffer): Revision => Number(key.toString('latin1').slice(`${prefix}/log/`.length)),
    part: (id: string, number: number): Buffer => at(`part/${id}/${digits(number)}`),
    parts: (id: string, first = 0, end?: number) =>
      span(`part/${id}/${digits(first)}`, end === undefined ? `part/${id}/\x7f` : `part/${id}/${digits(end)}`),
    allParts: span('part/', 'part/\x7f'),
    idOfPart: (key: Buffer): string => key.toString('latin1').slice(`${prefix}/part/`.length).split('/')[0] ?? '',
    parted: (last: Revision): Buffer => at(`parted/${digits(last)}`),
    allParted: span('parted/', 'parted/\x7f'),
    revisionOfParted: (key: Buffer): Revision => Number(key.toString('latin1').slice(`${prefix}/parted/`.length)),
    waiting: (id: string): Buffer => at(`waiting/${id}`),
    allWaiting: span('waiting/', 'waiting/\x7f'),
    entry: (key: Key): Buffer => at(`entry/${key}`),
    entries: (start: string, end: string) => span(`entry/${start}`, `entry/${end}`),
    entriesEnd: endOfPrefix,
    keyOf: ({ bytes, keyAt, keyEnd }: AnsweredKeyValue): Key => bytes.toString('latin1', keyAt + entryAt, keyEnd),
  };
}

function digits(number: number): string {
  return String(number).padStart(16, '0');
}

export function unchanged(key: Buffer, modRevision: string): Compare {
  return { target: 'MOD', result: 'EQUAL', key, modRevision };
}

export function present(key: Buffer): Compare {
  return { target: 'MOD', result: 'GREATER', key, modRevision: '0' };
}

export interface Head {
  readonly revision: Revision;
  /** What a commit compares; `0`: there is no head yet. */
  readonly modRevision: string;
}

export function encodeHead(revision: Revision): Buffer {
  return Buffer.from(JSON.stringify({ format, revision }));
}

export function decodeHead(kv: KeyValue | undefined, name: string): Head {
  if (!kv) return { revision: 0, modRevision: '0' };
  const head = parse(kv, name);
  const found = head['format'];
  if (typeof found !== 'number') throw corrupt(name, `its head is ${kv.value.toString()}`);
  if (found > format)
    throw new StoreError(
      'Invalid',
      `${name} has format ${found}, this Berth knows format ${format}: a newer version has written it; start that one`,
    );
  return { revision: revisionIn(head, 'revision', kv, name), modRevision: kv.modRevision };
}

export interface Applied {
  readonly revision: Revision;
  readonly modRevision: string;
}

export function encodeApplied(revision: Revision): Buffer {
  return Buffer.from(JSON.stringify({ revision }));
}

export function decodeApplied(kv: KeyValue | undefined, name: string): Applied {
  if (!kv) return { revision: 0, modRevision: '0' };
  return { revision: revisionIn(parse(kv, name), 'revision', kv, name), modRevision: kv.modRevision };
}

export interface CompactedMark {
  readonly before: Revision;
  /** etcd's revision when this was written: the next compaction may compact etcd itself up to it. 0: never yet. */
  readonly etcdRevision: number;
  readonly modRevision: string;
}

export function encodeCompacted(mark: { readonly before: Revision; readonly etcdRevision: number }): Buffer {
  return Buffer.from(JSON.stringify({ before: mark.before, etcdRevision: mark.etcdRevision }));
}

export function decodeCompacted(kv: KeyValue | undefined, name: string): CompactedMark {
  if (!kv) return { before: 1, etcdRevision: 0, modRevision: '0' };
  const mark = parse(kv, name);
  return {
    before: revisionIn(mark, 'before', kv, name),
    etcdRevision: revisionIn(mark, 'etcdRevision', kv, name),
    modRevision: kv.modRevision,
  };
}

function parse(kv: KeyValue, name: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(kv.value.toString());
    if (isRecord(value)) return value;
  } catch {
    // reported below
  }
  throw corrupt(name, `key ${kv.key.toString()} holds ${JSON.stringify(kv.value.toString().slice(0, 80))}`);
}

function revisionIn(record: Record<string, unknown>, field: string, kv: KeyValue, name: string): Revision {
  const value = record[field];
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw corrupt(name, `key ${kv.key.toString()} has no ${field}`);
}

export interface Parted {
  readonly last: Revision;
  readonly id: string;
  readonly keys: readonly Key[];
}

export function encodeParted(id: string, keys: readonly Key[]): Buffer {
  return Buffer.from([id, ...keys].join('\n'), 'latin1'); // no key holds a line feed
}

export function decodeParted(kv: KeyValue, layout: Layout): Parted {
  const [id = '', ...keys] = kv.value.toString('latin1').split('\n');
  return { last: layout.revisionOfParted(kv.key), id, keys };
}

export function leftInParts(value: Uint8Array): boolean {
  return value.byteLength >= leftInPartsMin;
}

// An entry: kind (1 byte), revision (6), checksum (4), then the value, or the id (16), offset and length (4 each) of
// its location.
const kindValue = 1;
const kindPlace = 2;
const entryHeader = 11;

/** In pieces, so that the value is not copied. */
export function encodeEntry(key: Key, revision: Revision, value: Uint8Array, place?: Place): readonly Uint8Array[] {
  const bytes = Buffer.allocUnsafe(entryHeader + (place ? 24 : 0));
  bytes.writeUInt8(place ? kindPlace : kindValue, 0);
  bytes.writeUIntBE(revision, 1, 6);
  bytes.writeUInt32BE(checksumOf(key, revision, value), 7);
  if (!place) return [bytes, value];
  bytes.write(place.id, entryHeader, 'hex');
  bytes.writeUInt32BE(place.offset, entryHeader + 16);
  bytes.writeUInt32BE(place.length, entryHeader + 20);
  return [bytes];
}

/** Throws `Corrupt` when the value here is damaged; a value in parts is checked when the parts are read. */
export function decodeEntry(kv: AnsweredKeyValue, layout: Layout, name: string): StoredEntry {
  const key = layout.keyOf(kv);
  const { bytes, valueAt, valueEnd } = kv;
  const at = valueAt + entryHeader;
  if (at > valueEnd) throw corrupt(name, `entry "${key}" is cut off`);
  const kind = bytes[valueAt];
  const revision = bytes.readUIntBE(valueAt + 1, 6);
  const checksum = bytes.readUInt32BE(valueAt + 7);
  if (kind === kindPlace && valueEnd === at + 24) {
    const id = bytes.toString('hex', at, at + 16);
    const offset = bytes.readUInt32BE(at + 16);
    return { key, revision, checksum, value: { id, offset, length: bytes.readUInt32BE(at + 20) } };
  }
  const value = new Uint8Array(bytes.buffer, bytes.byteOffset + at, valueEnd - at);
  checkEntry({ key, revision, checksum }, kind === kindValue ? value : undefined, name);
  return { key, revision, checksum, value };
}

export function checkEntry(
  { key, revision, checksum }: { key: Key; revision: Revision; checksum: number },
  value: Uint8Array | undefined,
  name: string,
): void {
  if (!value || checksumOf(key, revision, value) !== checksum)
    throw corrupt(name, `the value of key "${key}", written at revision ${revision}, has a wrong checksum`);
}

function checksumOf(key: string, revision: Revision, value: Uint8Array): number {
  return crc32(value, crc32(key, revision >>> 0));
}
