// Reads a tar archive as it comes: ustar, with the extensions of pax and GNU for long names and large files. It interprets
// nothing: whether a name is safe is decided in unpack.ts.

import { CommandError, exitCodes } from '../exit-codes.ts';

export type EntryType = 'file' | 'directory' | 'link' | 'hard link' | 'other';

export interface TarEntry {
  readonly name: string;
  readonly type: EntryType;
  readonly sizeBytes: number;
  readonly mode: number;
  readonly mtimeMs: number;
  /** Of a link: what it points to. */
  readonly target: string;
  /** The content of a file. What is not read before the next entry is skipped. */
  readonly content: AsyncIterable<Uint8Array>;
}

const blockBytes = 512;
/** Of a long name or the records of pax. */
const extensionBytesMax = 65_536;

const types: Readonly<Record<string, EntryType>> = {
  '\0': 'file',
  '0': 'file',
  '7': 'file',
  '1': 'hard link',
  '2': 'link',
  '5': 'directory',
};

/** Throws `CommandError` for what is no archive, or not all of one. */
export async function* tarEntries(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry, void> {
  const reader = new ByteReader(bytes);
  let extra: Extra = {};
  for (;;) {
    const block = await reader.take(blockBytes);
    if (block.every((byte) => byte === 0)) return;
    assertChecksum(block);
    const type = block.toString('latin1', 156, 157);
    const size = numberIn(block, 124, 12);
    if (type === 'x' || type === 'L' || type === 'K' || type === 'g') {
      if (size > extensionBytesMax) throw damaged('a name is too long');
      const data = await reader.take(size);
      await reader.skip(-size & (blockBytes - 1));
      if (type !== 'g') extra = { ...extra, ...extraOf(type, data) };
      continue;
    }
    const sizeBytes = extra.sizeBytes ?? size;
    const content = reader.pieces(sizeBytes);
    yield {
      name: extra.name ?? nameIn(block),
      type: types[type] ?? 'other',
      sizeBytes,
      mode: numberIn(block, 100, 8) & 0o777,
      mtimeMs: numberIn(block, 136, 12) * 1000,
      target: extra.target ?? textIn(block, 157, 100),
      content,
    };
    await drain(content); // what was not read
    await reader.skip(-sizeBytes & (blockBytes - 1));
    extra = {};
  }
}

interface Extra {
  readonly name?: string;
  readonly target?: string;
  readonly sizeBytes?: number;
}

function extraOf(type: string, data: Buffer): Extra {
  if (type === 'L') return { name: textIn(data, 0, data.length) };
  if (type === 'K') return { target: textIn(data, 0, data.length) };
  let extra: Extra = {};
  for (let at = 0; at < data.length; ) {
    const [head = '', digits = ''] = /^(\d{1,6}) /.exec(data.toString('latin1', at, at + 8)) ?? [];
    const length = Number(digits);
    if (length <= head.length || at + length > data.length) throw damaged('a record of pax is cut');
    const record = data.toString('utf8', at + head.length, at + length - 1);
    const equals = record.indexOf('=');
    const [key, value] = [record.slice(0, equals), record.slice(equals + 1)];
    if (key === 'path') extra = { ...extra, name: value };
    if (key === 'linkpath') extra = { ...extra, target: value };
    if (key === 'size') extra = { ...extra, sizeBytes: sizeOf(value) };
    at += length;
  }
  return extra;
}

function sizeOf(text: string): number {
  const size = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(size)) throw damaged('a size is no number');
  return size;
}

function nameIn(block: Buffer): string {
  const ustar = block.toString('latin1', 257, 262) === 'ustar' && block[262] === 0;
  const prefix = ustar ? textIn(block, 345, 155) : '';
  return `${prefix}${prefix === '' ? '' : '/'}${textIn(block, 0, 100)}`;
}

function textIn(block: Buffer, at: number, length: number): string {
  const field = block.subarray(at, at + length);
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end < 0 ? field.length : end);
}

/** Octal digits, or base 256 with the highest bit set. */
function numberIn(block: Buffer, at: number, length: number): number {
  if (((block[at] ?? 0) & 0x80) !== 0) {
    let value = (block[at] ?? 0) & 0x7f;
    for (const byte of block.subarray(at + 1, at + length)) value = value * 256 + byte;
    if (!Number.isSafeInteger(value)) throw damaged('a number is too large');
    return value;
  }
  const text = textIn(block, at, length).trim();
  if (!/^[0-7]*$/.test(text)) throw damaged('a number is none');
  return text === '' ? 0 : Number.parseInt(text, 8);
}

function assertChecksum(block: Buffer): void {
  const spaces = 8 * 0x20; // the checksum counts itself as spaces
  const sum = block.reduce((all, byte, at) => all + (at >= 148 && at < 156 ? 0 : byte), spaces);
  if (numberIn(block, 148, 8) !== sum) throw damaged('a checksum is wrong');
}

function damaged(why: string): CommandError {
  return new CommandError(exitCodes.internal, `the archive of artifacts is damaged: ${why}`);
}

async function drain(pieces: AsyncIterable<unknown>): Promise<void> {
  const all = pieces[Symbol.asyncIterator]();
  while (!(await all.next()).done);
}

class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array();

  constructor(bytes: AsyncIterable<Uint8Array>) {
    this.#source = bytes[Symbol.asyncIterator]();
  }

  /** For small amounts: all of it in one piece. */
  async take(count: number): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for await (const piece of this.pieces(count)) parts.push(piece);
    return Buffer.concat(parts);
  }

  async skip(count: number): Promise<void> {
    await drain(this.pieces(count));
  }

  /** The next `count` bytes as they come. */
  pieces(count: number): AsyncIterable<Uint8Array> {
    let left = count;
    const next = async (): Promise<IteratorResult<Uint8Array, undefined>> => {
      if (left === 0) return { done: true, value: undefined };
      const piece = await this.#atMost(left);
      left -= piece.byteLength;
      return { done: false, value: piece };
    };
    // Reading can stop and go on: no `return`, so that the rest can still be skipped.
    return { [Symbol.asyncIterator]: () => ({ next }) };
  }

  async #atMost(count: number): Promise<Uint8Array> {
    while (this.#chunk.byteLength === 0) {
      const { done, value } = await this.#source.next();
      if (done) throw damaged('its end is missing; try again');
      this.#chunk = value;
    }
    const piece = this.#chunk.subarray(0, count);
    this.#chunk = this.#chunk.subarray(piece.byteLength);
    return piece;
  }
}
