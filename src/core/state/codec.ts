// Records as bytes and back. Old forms are upgraded here, newer ones refused: a server must not half-understand its store.

import type { AnyRecord } from './records.ts';

/** The form this program writes. */
export const schemaVersion = 1;

/** Thrown for a record that a newer Berth wrote, or that is not one. */
export class UnreadableRecord extends Error {
  override name = 'UnreadableRecord';
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function encodeRecord(record: AnyRecord): Uint8Array {
  return encoder.encode(JSON.stringify(record));
}

export function decodeRecord(key: string, bytes: Uint8Array): AnyRecord {
  let record: unknown;
  try {
    record = JSON.parse(decoder.decode(bytes));
  } catch (cause) {
    throw new UnreadableRecord(`the record at ${key} is not JSON; the store has been changed by something else`, {
      cause,
    });
  }
  if (typeof record !== 'object' || record === null || !('kind' in record)) {
    throw new UnreadableRecord(`the record at ${key} has no kind; the store has been changed by something else`);
  }
  if ('schemaVersion' in record && typeof record.schemaVersion === 'number' && record.schemaVersion > schemaVersion) {
    throw new UnreadableRecord(
      `the record at ${key} has schema version ${record.schemaVersion}, this Berth knows ${schemaVersion}: start the newer version`,
    );
  }
  return record as AnyRecord; // the codec: only core/state writes records
}
