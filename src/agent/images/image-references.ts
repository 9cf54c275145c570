// Which images the guests of this host lie upon, read from what is on disk: their records, and the headers of their disks. Never from
// memory, so that it holds after any restart; and when something cannot be read, it says so instead of guessing.

import { constants, type Dirent } from 'node:fs';
import { open, readdir, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { Type } from 'typebox';
import { matches } from '../../api/parse.ts';

/** One guest, and what of the image cache it needs. */
export interface ImageReference {
  readonly guest: string;
  /** The files that its disks name as their backing, as absolute paths. */
  readonly paths: readonly string[];
  /** Of the image that its record names: it counts from before the disk is made. */
  readonly digest?: string;
}

export type FoundReferences =
  | { readonly complete: true; readonly references: readonly ImageReference[] }
  /** Something could not be read: nothing may be taken for unused. */
  | { readonly complete: false; readonly reason: string };

/** Looks into every folder of every one of `guestRoots`; those that are not there hold no guests. */
export async function findImageReferences(guestRoots: readonly string[]): Promise<FoundReferences> {
  const references: ImageReference[] = [];
  try {
    for (const root of guestRoots) {
      for (const entry of await entriesOf(root))
        if (entry.isDirectory()) references.push(await referenceOf(join(root, entry.name), entry.name));
    }
  } catch (error) {
    return { complete: false, reason: error instanceof Error ? error.message : 'a guest cannot be read' };
  }
  return { complete: true, references };
}

async function entriesOf(path: string): Promise<Dirent[]> {
  return (await ifThere(readdir(path, { withFileTypes: true }))) ?? [];
}

async function referenceOf(directory: string, guest: string): Promise<ImageReference> {
  const paths: string[] = [];
  for (const entry of await entriesOf(directory)) {
    const path = join(directory, entry.name);
    const backing = entry.isFile() ? await ifThere(backingFileOf(path)) : undefined;
    if (backing !== undefined) paths.push(backing);
  }
  const text = await ifThere(readFile(join(directory, 'guest.json'), 'utf8'));
  const digest = text === undefined ? undefined : digestIn(text);
  // A record that cannot be read is no reason to keep everything: once there is a disk, the disk says the same.
  return { guest, paths, ...(digest === undefined ? {} : { digest }) };
}

const backingNameBytesMax = 1023; // qemu, docs/interop/qcow2.txt

/** What a qcow2 file names as its backing file; undefined for one that has none, and for any other file. */
export async function backingFileOf(path: string): Promise<string | undefined> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const head = Buffer.alloc(20);
    const { bytesRead } = await file.read(head, 0, 20, 0);
    if (bytesRead < 20 || head.toString('latin1', 0, 4) !== 'QFI\xfb') return undefined;
    const at = head.readBigUInt64BE(8);
    const length = head.readUInt32BE(16);
    if (at === 0n || length === 0) return undefined;
    const name = Buffer.alloc(Math.min(length, backingNameBytesMax));
    const named = await file.read(name, 0, name.length, Number(at));
    const backing = name.toString('utf8', 0, named.bytesRead);
    if (length > backingNameBytesMax || named.bytesRead < length || /^[a-z][a-z0-9+-]*:/i.test(backing))
      throw new Error(`the disk ${path} names something as its backing file that is no path`);
    return resolve(dirname(path), backing);
  } finally {
    await file.close();
  }
}

const Digested = Type.Object({ imageDigest: Type.String() });

function digestIn(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return matches(Digested, value) ? value.imageDigest : undefined;
  } catch {
    return undefined;
  }
}

/** A guest may be removed while it is looked at: then it needs nothing. */
async function ifThere<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined;
    throw error;
  }
}
