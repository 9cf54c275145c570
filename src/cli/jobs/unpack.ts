// Unpacks artifacts into a directory. They come from a program that is not trusted, so nothing is written outside of the
// directory, no link is followed on the way, and no link that leads out of it is left behind.

import { constants, type Stats } from 'node:fs';
import { copyFile, lstat, mkdir, open, realpath, rm, symlink } from 'node:fs/promises';
import { join, sep } from 'node:path';
import { writeFailure } from '../options/file-failure.ts';
import { type TarEntry, tarEntries } from './tar-entries.ts';

export interface Unpacked {
  readonly files: number;
  readonly bytes: number;
  /** What was left out, each with the reason. */
  readonly skipped: readonly string[];
}

/** Files of the same name are replaced. */
export async function unpack(bytes: AsyncIterable<Uint8Array>, directory: string): Promise<Unpacked> {
  try {
    await mkdir(directory, { recursive: true });
    const unpacking = new Unpacking(await realpath(directory));
    for await (const entry of tarEntries(bytes)) await unpacking.take(entry);
    return await unpacking.end();
  } catch (error) {
    throw writeFailure(error, `write to ${directory}`);
  }
}

class Unpacking {
  readonly #root: string;
  readonly #skipped: string[] = [];
  readonly #links: string[] = [];
  #files = 0;
  #bytes = 0;

  constructor(root: string) {
    this.#root = root;
  }

  async take(entry: TarEntry): Promise<void> {
    const parts = innerParts(entry.name);
    if (parts === undefined) return this.#skip(entry.name, 'its name leads out of the directory');
    if (parts.length === 0) return; // the directory itself
    if (entry.type === 'other') return this.#skip(entry.name, 'it is neither a file, a directory nor a link');
    if (!(await this.#makeDirectories(entry.type === 'directory' ? parts : parts.slice(0, -1))))
      return this.#skip(entry.name, 'a part of its path is no directory');
    if (entry.type === 'directory') return;
    const path = join(this.#root, ...parts);
    const before = await existing(path);
    if (before?.isDirectory()) return this.#skip(entry.name, 'there is a directory of this name');
    if (before) await rm(path);
    if (entry.type === 'file') await this.#writeFile(path, entry);
    else if (entry.type === 'link') await this.#link(path, entry);
    else await this.#copy(path, entry);
  }

  /** Removes links that lead out, now that all that they may lead through is there. */
  async end(): Promise<Unpacked> {
    for (const path of this.#links) {
      const target = await realpath(path).catch(() => undefined); // it leads nowhere, or in a circle
      if (target !== undefined && (target === this.#root || target.startsWith(`${this.#root}${sep}`))) continue;
      await rm(path, { force: true });
      this.#skip(path.slice(this.#root.length + 1), 'it is a link that leads out of the directory, or nowhere');
    }
    return { files: this.#files, bytes: this.#bytes, skipped: this.#skipped };
  }

  #skip(name: string, why: string): void {
    this.#skipped.push(`${name}: ${why}`);
  }

  /** False: there is something else in the way, perhaps a link. */
  async #makeDirectories(parts: readonly string[]): Promise<boolean> {
    let path = this.#root;
    for (const part of parts) {
      path = join(path, part);
      const there = await existing(path);
      if (there === undefined) await mkdir(path);
      else if (!there.isDirectory()) return false;
    }
    return true;
  }

  async #writeFile(path: string, { mode, content }: TarEntry): Promise<void> {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    const file = await open(path, flags, mode | 0o600);
    try {
      for await (const piece of content) {
        await file.writeFile(piece);
        this.#bytes += piece.byteLength;
      }
    } finally {
      await file.close();
    }
    this.#files += 1;
  }

  async #link(path: string, { target }: TarEntry): Promise<void> {
    if (target === '' || target.includes('\0'))
      return this.#skip(path.slice(this.#root.length + 1), 'it points nowhere');
    await symlink(target, path);
    this.#links.push(path);
  }

  /** A second name of a file that came before. */
  async #copy(path: string, { name, target }: TarEntry): Promise<void> {
    const parts = innerParts(target);
    const ready = parts !== undefined && parts.length > 0 && (await this.#makeDirectories(parts.slice(0, -1)));
    const from = join(this.#root, ...(parts ?? []));
    if (!ready || !(await existing(from))?.isFile())
      return this.#skip(name, 'the file that it is another name of is not there');
    await copyFile(from, path, constants.COPYFILE_EXCL);
    this.#files += 1;
  }
}

/** Undefined: it is absolute, leads upwards, or is no name. */
function innerParts(name: string): readonly string[] | undefined {
  if (name.startsWith('/') || name.includes('\0') || (sep !== '/' && name.includes(sep))) return undefined;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  return parts.includes('..') ? undefined : parts;
}

/** Without following a link. Undefined: there is nothing. */
async function existing(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
