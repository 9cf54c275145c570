// The disk in a tar archive: the one file in its folder `disk/`, as containerdisks have it. It reads headers and passes one file's bytes
// on; no name in the archive ever becomes a name on this host, and nothing is extracted.

import { DriverError } from '../../host/driver-error.ts';

const block = 512;
const entriesMax = 100_000;
const extensionBytesMax = 1024 * 1024;

/** Throws `DriverError` `ImageInvalid` for an archive that has no such file, several, or is damaged. */
export async function* diskInTar(archive: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = readerOf(archive);
  let found: string | undefined;
  let longName: string | undefined;
  for (let entries = 0; ; entries++) {
    if (entries > entriesMax) throw bad(`it has more than ${entriesMax} entries`);
    const header = await reader.take(block);
    if (header === undefined || header.every((byte) => byte === 0)) break;
    const { name, type, size } = entryOf(header);
    const padded = Math.ceil(size / block) * block;
    if (type === 'x' || type === 'L') {
      // A name of its own in an extension could be the only thing that tells `disk/` from elsewhere.
      if (size > extensionBytesMax) throw bad('one of its entries has an extension of more than a mebibyte');
      const text = Buffer.from((await reader.take(padded)) ?? []).toString('utf8', 0, size);
      if (type === 'L') longName = text.replace(/\0.*$/s, '');
      else longName = /(?:^|\n)\d+ path=([^\n]*)\n/.exec(text)?.[1] ?? longName;
      if (type === 'x' && /(?:^|\n)\d+ (size|GNU\.sparse[^=]*)=/.test(text))
        throw bad('an entry of it says its size twice, or is sparse');
      continue;
    }
    const path = (longName ?? name).replace(/^(\.?\/)+/, '');
    longName = undefined;
    const isFile = type === '0' || type === '\0' || type === '7';
    if (!path.startsWith('disk/') || !isFile || size === 0) {
      if (path.startsWith('disk/') && !isFile && type !== '5') throw bad('what is in disk/ is no plain file');
      await reader.skip(padded);
      continue;
    }
    if (found !== undefined) throw bad('it has more than one file in disk/');
    found = path;
    yield* reader.pass(size);
    await reader.skip(padded - size);
  }
  if (found === undefined) throw bad('it has no file in disk/');
  while ((await reader.some(Number.MAX_SAFE_INTEGER)) !== undefined); // the checksum is of the whole archive
}

function entryOf(header: Buffer): { name: string; type: string; size: number } {
  const text = (from: number, to: number): string => header.toString('utf8', from, to).replace(/\0.*$/s, '');
  let sum = 0;
  for (const [i, byte] of header.entries()) sum += i >= 148 && i < 156 ? 32 : byte;
  if (Number.parseInt(text(148, 156).trim(), 8) !== sum) throw bad('the checksum of a header is wrong');
  const wide = (header[124] ?? 0) >= 0x80; // base 256, for files of 8 GiB and more
  const size = wide ? Number(header.readBigUInt64BE(128)) : Number.parseInt(text(124, 136).trim() || '0', 8);
  if (!Number.isSafeInteger(size) || size < 0) throw bad('an entry of it has no possible size');
  const prefix = text(257, 262) === 'ustar' ? text(345, 500) : '';
  return {
    name: prefix === '' ? text(0, 100) : `${prefix}/${text(0, 100)}`,
    type: header.toString('latin1', 156, 157),
    size,
  };
}

function readerOf(source: AsyncIterable<Uint8Array>) {
  const chunks = source[Symbol.asyncIterator]();
  let rest: Uint8Array = new Uint8Array(0);
  /** Something of what comes next, at most `bytes`; undefined at the end. */
  const some = async (bytes: number): Promise<Uint8Array | undefined> => {
    while (rest.length === 0) {
      const next = await chunks.next();
      if (next.done === true) return undefined;
      rest = next.value;
    }
    const piece = rest.subarray(0, bytes);
    rest = rest.subarray(piece.length);
    return piece;
  };
  const pass = async function* (bytes: number): AsyncGenerator<Uint8Array> {
    for (let left = bytes; left > 0; ) {
      const piece = await some(left);
      if (piece === undefined) throw bad('it is cut off');
      left -= piece.length;
      yield piece;
    }
  };
  return {
    some,
    pass,
    async skip(bytes: number): Promise<void> {
      for await (const piece of pass(bytes)) void piece;
    },
    /** Exactly this many bytes; undefined when there are none left. */
    async take(bytes: number): Promise<Buffer | undefined> {
      const first = await some(bytes);
      if (first === undefined) return undefined;
      const pieces = [first];
      for await (const piece of pass(bytes - first.length)) pieces.push(piece);
      return Buffer.concat(pieces);
    },
  };
}

function bad(why: string): DriverError {
  return new DriverError('ImageInvalid', `cannot take the disk out of its layer: ${why}`);
}
