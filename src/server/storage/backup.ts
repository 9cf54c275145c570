// A backup: everything in a store at one revision, as lines of JSON that people can read, made while the store is used. It is whole only
// with its last line, which says how many lines there are and what they add up to.
//
//   {"berth":"backup","format":1,"version":"0.1.0","epoch":"…","createdAtMs":…,"masterKeys":["…"]}
//   {"key":"hosts/h1","revision":17,"value":{…}}            every entry as the pages of a list had it
//   {"key":"hosts/h2","revision":23,"value":null}           then what changed while the pages were read
//   {"end":true,"revision":23,"lines":2,"sha256":"…"}       of all lines before this one

import { createHash } from 'node:crypto';
import { keys } from '../../core/state/keys.ts';
import { changesBetween } from '../../store/changes-between.ts';
import { pagesOf } from '../../store/pages.ts';
import { type Key, type Revision, type Store, StoreError } from '../../store/store.ts';
import { dataKeysAmong, dataKeysIn, masterKeysOf } from './data-key-records.ts';
import { clusterIn } from './cluster-record.ts';

const format = 1;

export interface Backup {
  readonly epoch: string | undefined;
  readonly version: string;
  readonly createdAtMs: number;
  /** The ids of the master keys that it needs, never the keys; empty: nothing in it is encrypted. */
  readonly masterKeys: readonly string[];
  /** The state of the store that it holds. */
  readonly revision: Revision;
  /** The value of each key, as the store had it. */
  readonly entries: ReadonlyMap<Key, Uint8Array>;
}

/** Thrown for a file that is not a backup, not a whole one, or one of a newer Berth. Nothing of it must be used. */
export class BadBackup extends Error {
  override name = 'BadBackup';
}

export interface BackupOptions {
  readonly version: string;
  readonly nowMs: number;
  /** Also of a closed store, for the caller that closed it. */
  readonly closedToo?: boolean;
}

/** The bytes of a backup of what the store holds when its last page is read. */
export async function* writeBackup(
  store: Store,
  { version, nowMs, closedToo = false }: BackupOptions,
): AsyncGenerator<Uint8Array, void> {
  const hash = createHash('sha256');
  let lines = 0;
  const take = (text: readonly Uint8Array[]): Uint8Array => {
    const bytes = Buffer.concat(text);
    hash.update(bytes);
    return bytes;
  };
  const found = await clusterIn(store);
  const { epoch, closed } = found?.cluster ?? {};
  // One that was moved is whole, and the last of its kind when the other is lost.
  if (closed && closed.by !== 'moved' && !closedToo)
    throw new StoreError('Unavailable', `the contents of the store are incomplete: ${closed.why}`);
  const masterKeys = masterKeysOf(await dataKeysIn(store));
  const header = { berth: 'backup', format, version, epoch, createdAtMs: nowMs, masterKeys };
  yield take([Buffer.from(`${JSON.stringify(header)}\n`)]);

  let first: Revision | undefined;
  let last: Revision = 0;
  for await (const page of pagesOf(store)) {
    first ??= page.revision;
    last = page.revision;
    lines += page.entries.length;
    if (page.entries.length > 0) yield take(page.entries.map(lineOf));
  }
  for await (const events of changesBetween(store, first ?? 0, last)) {
    lines += events.length;
    yield take(events.map(lineOf));
  }
  if ((await store.get(keys.cluster))?.revision !== found?.revision)
    throw new StoreError('Unavailable', 'the store was closed or restored while it was read; back up again');
  yield Buffer.from(`${JSON.stringify({ end: true, revision: last, lines, sha256: hash.digest('hex') })}\n`);
}

/** Values are JSON on one line, and stand in the file byte for byte as in the store. */
function lineOf({ key, revision, value }: { key: Key; revision: Revision; value: Uint8Array | null }): Uint8Array {
  return Buffer.concat([headOf(key, revision), value ?? nothing, endOfLine]);
}

const nothing = Buffer.from('null');
const endOfLine = Buffer.from('}\n');

function headOf(key: Key, revision: Revision): Buffer {
  return Buffer.from(`{"key":${JSON.stringify(key)},"revision":${revision},"value":`);
}

/** Reads a whole backup and checks it: only then is anything of it known. Throws `BadBackup`. */
export async function readBackup(pieces: AsyncIterable<Uint8Array>): Promise<Backup> {
  const hash = createHash('sha256');
  const entries = new Map<Key, Uint8Array>();
  let header: Header | undefined;
  let end: End | undefined;
  let lines = 0;
  let number = 0;
  for await (const line of linesOf(pieces)) {
    number += 1;
    if (end) throw new BadBackup(`line ${number} follows the end of the backup`);
    const value = parseLine(line, number);
    if (!header) header = headerOf(value);
    else if ('end' in value) {
      end = value as unknown as End; // looked at below
      continue;
    } else {
      lines += 1;
      takeEntry(entries, value, line, number);
    }
    hash.update(line).update('\n');
  }
  if (!header) throw new BadBackup('the file is empty');
  if (!end)
    throw new BadBackup(`it is cut off after line ${number}: its last line, which says that it is whole, is missing`);
  if (end.lines !== lines) throw new BadBackup(`it has ${lines} entries, its last line says ${end.lines}`);
  if (end.sha256 !== hash.digest('hex')) throw new BadBackup('its content has been changed: its checksum is wrong');
  const masterKeys = masterKeysOf(dataKeysAmong(entries));
  return { ...header, masterKeys, revision: end.revision, entries };
}

interface Header {
  readonly epoch: string | undefined;
  readonly version: string;
  readonly createdAtMs: number;
}

interface End {
  readonly revision: Revision;
  readonly lines: number;
  readonly sha256: string;
}

function headerOf(value: Readonly<Record<string, unknown>>): Header {
  if (value['berth'] !== 'backup') throw new BadBackup('it is not a backup made by Berth');
  if (typeof value['format'] !== 'number' || value['format'] > format)
    throw new BadBackup(
      `a newer Berth (${String(value['version'])}) made it, in format ${String(value['format'])}; this one knows ${format}: use the newer version`,
    );
  return {
    epoch: typeof value['epoch'] === 'string' ? value['epoch'] : undefined,
    version: String(value['version']),
    createdAtMs: Number(value['createdAtMs']),
  };
}

function takeEntry(
  entries: Map<Key, Uint8Array>,
  { key, revision, value }: Readonly<Record<string, unknown>>,
  line: Buffer,
  number: number,
): void {
  if (typeof key !== 'string' || typeof revision !== 'number')
    throw new BadBackup(`line ${number} is no entry: it has no key or no revision`);
  if (value === null) return void entries.delete(key);
  const head = headOf(key, revision);
  if (!line.subarray(0, head.byteLength).equals(head)) throw new BadBackup(`line ${number} is not as Berth writes it`);
  entries.set(key, new Uint8Array(line.subarray(head.byteLength, line.byteLength - 1)));
}

function parseLine(line: Buffer, number: number): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    if (typeof value === 'object' && value !== null) return { ...value };
  } catch {
    // falls through
  }
  throw new BadBackup(`line ${number} is not JSON${number === 1 ? ': it is not a backup made by Berth' : ''}`);
}

/** No record is larger than a commit. */
const lineBytesMax = 64 * 1024 * 1024;

async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const piece of pieces) {
    const bytes = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    let start = 0;
    for (let end = bytes.indexOf(10, start); end >= 0; end = bytes.indexOf(10, start)) {
      yield rest.length === 0 ? bytes.subarray(start, end) : Buffer.concat([...rest, bytes.subarray(start, end)]);
      rest = [];
      restBytes = 0;
      start = end + 1;
    }
    if (start === bytes.byteLength) continue;
    rest.push(bytes.subarray(start));
    restBytes += bytes.byteLength - start;
    if (restBytes > lineBytesMax)
      throw new BadBackup('it has a line longer than any entry: it is not a backup made by Berth');
  }
  if (rest.length > 0) yield Buffer.concat(rest);
}
