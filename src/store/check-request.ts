// What every backend must refuse: invalid keys, prefixes, limits and writes. Every backend calls this first, so that
// all refuse the same requests with the same messages. It never reads stored data.

import { type Condition, type Key, type ListOptions, type Revision, StoreError, type Write } from './store.ts';

const keyBytesMax = 512;

/**
 * Maximum size of a commit; far above any resource, far below what SQLite, PostgreSQL and memory can hold in one piece.
 */
const commitBytesMax = 64 * 1024 * 1024;

const printable = /^[\x20-\x7e]*$/;

export function checkKey(key: Key): void {
  if (key === '') throw invalid('a key is empty');
  if (!printable.test(key)) throw invalid(`key ${JSON.stringify(key)} holds more than printable ASCII`);
  if (key.length > keyBytesMax)
    throw invalid(`key ${JSON.stringify(`${key.slice(0, 40)}…`)} has ${key.length} bytes; at most ${keyBytesMax}`);
}

export function checkList(prefix: string, options: ListOptions): void {
  checkPrefix(prefix);
  if (options.after !== undefined && !printable.test(options.after))
    throw invalid(`list after ${JSON.stringify(options.after)}: keys hold printable ASCII only`);
  if (options.limit !== undefined && (!Number.isSafeInteger(options.limit) || options.limit < 1))
    throw invalid(`list limit ${options.limit} is not a positive whole number`);
}

/** Returns the size of the commit's keys and values in bytes. */
export function checkCommit(conditions: readonly Condition[], writes: readonly Write[]): number {
  for (const { key, ifRevision } of conditions) {
    checkKey(key);
    checkRevision(ifRevision, `the condition on key "${key}"`);
  }
  let bytes = 0;
  const written = new Set<Key>();
  for (const { key, value } of writes) {
    checkKey(key);
    if (written.has(key)) throw invalid(`key "${key}" occurs twice in one commit`);
    written.add(key);
    bytes += key.length + (value?.byteLength ?? 0);
  }
  if (bytes > commitBytesMax)
    throw invalid(`a commit of ${bytes} bytes was refused; at most ${commitBytesMax}: split it into several`);
  return bytes;
}

export function checkWatch(prefix: string, after: Revision, current: Revision): void {
  checkPrefix(prefix);
  checkRevision(after, `the watch of "${prefix}"`);
  if (after > current)
    throw invalid(`watch of "${prefix}" after revision ${after}: the store is at ${current}; list again`);
}

export function checkCompact(before: Revision, current: Revision): void {
  checkRevision(before, 'the compaction');
  if (before > current + 1) throw invalid(`compaction before revision ${before}: the store is at ${current}`);
}

/** The first string above every key with this prefix: 0x7f follows the last printable character. */
export function endOfPrefix(prefix: string): string {
  return `${prefix}\x7f`;
}

/** The first possible key of the list: the space is the lowest printable character. */
export function startOfList(prefix: string, { after }: ListOptions): string {
  const next = after === undefined ? '' : `${after} `;
  return next > prefix ? next : prefix;
}

function checkPrefix(prefix: string): void {
  if (!printable.test(prefix)) throw invalid(`prefix ${JSON.stringify(prefix)} holds more than printable ASCII`);
}

function checkRevision(revision: Revision, of: string): void {
  if (!Number.isSafeInteger(revision) || revision < 0)
    throw invalid(`revision ${revision} of ${of} is not a whole number from 0 up`);
}

function invalid(message: string): StoreError {
  return new StoreError('Invalid', message);
}
