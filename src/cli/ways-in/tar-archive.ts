// A local file or directory as a tar archive (ustar, with pax records where needed), streamed: only one piece is in
// memory. Links stay links. Owners are omitted, because their names mean nothing elsewhere.

import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * `name`: its name in the archive. Throws for anything but files, directories and links, and when a file changes its
 * size.
 */
export async function* tarArchive(path: string, name: string): AsyncGenerator<Uint8Array> {
  yield* entries(path, name);
  yield Buffer.alloc(2 * blockBytes);
}

const blockBytes = 512;
const pieceBytes = 256 * 1024;
/** The largest value of eleven octal digits. */
const sizeMax = 8 ** 11 - 1;

async function* entries(path: string, name: string): AsyncGenerator<Uint8Array> {
  const stat = await lstat(path);
  if (stat.isSymbolicLink()) {
    yield header({ name, stat, type: '2', bytes: 0, target: await readlink(path) });
  } else if (stat.isDirectory()) {
    yield header({ name: `${name}/`, stat, type: '5', bytes: 0 });
    for (const entry of (await readdir(path)).toSorted()) yield* entries(join(path, entry), `${name}/${entry}`);
  } else if (stat.isFile()) yield* fileEntry(path, name);
  else throw new Error(`${path} is not a file, a directory or a symbolic link`);
}

async function* fileEntry(path: string, name: string): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const stat = await file.stat();
    yield header({ name, stat, type: '0', bytes: stat.size });
    for (let at = 0; at < stat.size; ) {
      const wanted = Math.min(pieceBytes, stat.size - at);
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
      if (bytesRead === 0) throw new Error(`${path} became shorter while it was read`);
      at += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
    yield Buffer.alloc(-stat.size & (blockBytes - 1));
  } finally {
    await file.close();
  }
}

interface Entry {
  readonly name: string;
  readonly stat: Stats;
  readonly type: '0' | '2' | '5';
  readonly bytes: number;
  readonly target?: string;
}

function header({ name, stat, type, bytes, target = '' }: Entry): Uint8Array {
  const records = [
    ...(Buffer.byteLength(name) > 100 ? [paxRecord('path', name)] : []),
    ...(Buffer.byteLength(target) > 100 ? [paxRecord('linkpath', target)] : []),
    ...(bytes > sizeMax ? [paxRecord('size', String(bytes))] : []),
  ].join('');
  const own = block({ name, target, type, bytes: Math.min(bytes, sizeMax), mode: stat.mode, mtimeMs: stat.mtimeMs });
  if (records === '') return own;
  const data = Buffer.from(records);
  const pax = block({ name: 'pax', target: '', type: 'x', bytes: data.length, mode: 0o644, mtimeMs: stat.mtimeMs });
  return Buffer.concat([pax, data, Buffer.alloc(-data.length & (blockBytes - 1)), own]);
}

/** `<length> <key>=<value>\n`, where the length counts itself. */
function paxRecord(key: string, value: string): string {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + 1;
  while (length !== rest + String(length).length) length = rest + String(length).length;
  return `${length} ${key}=${value}\n`;
}

function block(fields: {
  readonly name: string;
  readonly target: string;
  readonly type: Entry['type'] | 'x';
  readonly bytes: number;
  readonly mode: number;
  readonly mtimeMs: number;
}): Buffer {
  const made = Buffer.alloc(blockBytes);
  const octal = (value: number, at: number, length: number): void =>
    void made.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at);
  made.write(fields.name, 0, 100); // longer values are in the pax records
  octal(fields.mode & 0o777, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(fields.bytes, 124, 12);
  octal(Math.max(0, Math.floor(fields.mtimeMs / 1000)), 136, 12);
  made.write(' '.repeat(8), 148); // the checksum counts itself as spaces
  made.write(fields.type, 156);
  made.write(fields.target, 157, 100);
  made.write('ustar\x0000', 257);
  const sum = made.reduce((all, byte) => all + byte, 0);
  made.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return made;
}
