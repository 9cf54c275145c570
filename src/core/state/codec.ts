// Records as bytes and back. Old forms are upgraded here, newer ones are refused: a server must not half-understand its
// store. The block of memory that encoded records share is the one mutable table; bytes handed out are never written
// again.

import { isRecord } from '../../base/is-record.ts';
import type { AnyRecord } from './records.ts';
import { shareParts } from './share-parts.ts';
import { schemaVersion, upgraded } from './upgrade.ts';

/** Thrown for a record that a newer Berth wrote, or that is no record. */
export class UnreadableRecord extends Error {
  override name = 'UnreadableRecord';
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/**
 * A view into a block of memory shared with other records, because allocating memory for each record costs more than
 * encoding it.
 */
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
/** UTF-8 needs at most three bytes for one unit of UTF-16. */
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
  const record = present(key, parsed);
  shareParts(record);
  return record;
}

/** Of an encrypted record, which server/sealing/ opens before it is decoded. */
const sealedKind = 'sealed';

/** The record in its newest form. */
function present(key: string, record: unknown): AnyRecord {
  if (!isRecord(record) || !('kind' in record)) {
    throw new UnreadableRecord(`the record at ${key} has no kind; the store has been changed by something else`);
  }
  if (record['kind'] === sealedKind)
    throw new UnreadableRecord(`the record at ${key} is encrypted: start with the master key of this store`);
  const version = record['schemaVersion'];
  if (typeof version === 'number' && version > schemaVersion) {
    throw new UnreadableRecord(
      `the record at ${key} has schema version ${version}, this Berth knows ${schemaVersion}: start the newer version`,
    );
  }
  const newest: object = upgraded(record);
  return newest as AnyRecord; // the codec: only core/state writes records
}
