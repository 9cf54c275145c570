// Lets the tar of `git archive` pass, within limits of bytes and entries: a small tree can name the same directory a billion times. It rewrites
// pax records of long names as GNU ones, because busybox ignores pax records. It never unpacks anything.

import { DriverError } from '../../host/driver-error.ts';
import { treePrefix } from '../guest/run-disk.ts';
import { CommitCount, type CommitLimits } from './commit-limits.ts';

const block = 512;
/** Of a path or the target of a link: each at most 4096 bytes. */
const recordBytesMax = 16_384;

/** The same entries, each file with the bytes it had. Throws `RepositoryRefused`. */
export async function* passTar(
  input: AsyncIterable<Uint8Array>,
  limits: CommitLimits,
  what: string,
): AsyncGenerator<Uint8Array> {
  const reader = new BlockReader(input);
  let records: ReadonlyMap<string, Buffer> = new Map();
  const count = new CommitCount(limits, what);
  for (;;) {
    const header = await reader.take(block);
    if (header === undefined) throw new DriverError('Internal', `cannot fetch ${what}: git's archive has no end`);
    if (header.every((byte) => byte === 0)) break;
    const size = Number.parseInt(header.toString('latin1', 124, 136), 8);
    const type = String.fromCharCode(header[156] ?? 0);
    if (!Number.isSafeInteger(size)) throw count.refused('it contains a file that is too large');
    const padded = Math.ceil(size / block) * block;
    if (type === 'g' || type === 'x') {
      if (padded > recordBytesMax) throw count.refused('it contains a path that is too long');
      const record = await reader.take(padded);
      if (type === 'x') records = paxRecords(record?.subarray(0, size) ?? Buffer.alloc(0));
      continue;
    }
    if (records.has('size')) throw count.refused('it contains a file that is too large');
    const path = (records.get('path') ?? nameOf(header)).toString('latin1');
    if (!path.startsWith(treePrefix)) throw count.refused('it contains a path outside its tree');
    if (path !== treePrefix) count.add(path.slice(treePrefix.length).replace(/\/$/, ''), block + padded);
    for (const [name, kind] of longRecords) {
      const value = records.get(name);
      if (value !== undefined) yield gnuRecord(kind, value);
    }
    records = new Map();
    yield header;
    yield* reader.pass(padded);
  }
  yield Buffer.alloc(2 * block);
  await reader.drain();
}

const longRecords = [
  ['path', 'L'],
  ['linkpath', 'K'],
] as const;

function nameOf(header: Buffer): Buffer {
  const text = (from: number, to: number): Buffer => {
    const end = header.indexOf(0, from);
    return header.subarray(from, end === -1 || end > to ? to : end);
  };
  const [name, folder] = [text(0, 100), text(345, 500)];
  return folder.length === 0 ? name : Buffer.concat([folder, Buffer.from('/'), name]);
}

/** Records as `LENGTH KEY=VALUE\n`, where the length counts itself. */
function paxRecords(bytes: Buffer): ReadonlyMap<string, Buffer> {
  const found = new Map<string, Buffer>();
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(' ', at);
    const length = Number(bytes.toString('latin1', at, space));
    const equals = bytes.indexOf('=', space);
    if (space === -1 || equals === -1 || !Number.isInteger(length) || length <= 0) break;
    found.set(bytes.toString('latin1', space + 1, equals), bytes.subarray(equals + 1, at + length - 1));
    at += length;
  }
  return found;
}

/** GNU's `././@LongLink`: a header of its own and the text with a zero after it. */
function gnuRecord(type: 'L' | 'K', value: Buffer): Buffer {
  const header = Buffer.alloc(block);
  const size = value.length + 1;
  header.write('././@LongLink', 0, 'latin1');
  header.write('0000644\0' + '0000000\0'.repeat(2), 100, 'latin1');
  header.write(`${size.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0`, 124, 'latin1');
  header.write(' '.repeat(8), 148, 'latin1');
  header.write(type, 156, 'latin1');
  header.write('ustar  \0', 257, 'latin1');
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return Buffer.concat([header, value, Buffer.alloc(Math.ceil(size / block) * block - value.length)]);
}

/** Reads a stream in pieces of wanted lengths. */
class BlockReader {
  readonly #input: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(input: AsyncIterable<Uint8Array>) {
    this.#input = input[Symbol.asyncIterator]();
  }

  /** Undefined: the stream ended before that many bytes. */
  async take(length: number): Promise<Buffer | undefined> {
    while (this.#rest.length < length) {
      const chunk = await this.#input.next();
      if (chunk.done === true) return undefined;
      this.#rest = this.#rest.length === 0 ? Buffer.from(chunk.value) : Buffer.concat([this.#rest, chunk.value]);
    }
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }

  /** As they come. */
  async *pass(length: number): AsyncGenerator<Uint8Array> {
    for (let left = length; left > 0; ) {
      const piece = await this.take(Math.min(left, Math.max(1, this.#rest.length)));
      if (piece === undefined) throw new DriverError('Internal', "git's archive ended inside a file");
      left -= piece.length;
      yield piece;
    }
  }

  async drain(): Promise<void> {
    for (;;) if ((await this.#input.next()).done === true) return;
  }
}
