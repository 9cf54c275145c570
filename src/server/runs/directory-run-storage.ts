// The files of runs in a directory: <directory>/<instanceId>/log and artifacts.tar. Several control planes may share it. No
// file is ever truncated: a writer that was overtaken by another one would cut what that one has acknowledged.

import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ApiError } from '../../api/errors.ts';
import { assert } from '../../base/assert.ts';
import { syncDirectory } from '../images/part-file.ts';
import type { RunFile, RunPart, RunStorage, StoredRun } from './run-storage.ts';

const fileNames: Readonly<Record<RunPart, string>> = { log: 'log', artifacts: 'artifacts.tar' };
const instanceIdForm = /^[a-z]+_[0-9A-Za-z]{1,64}$/;

export class DirectoryRunStorage implements RunStorage {
  readonly #directory: string;

  /** It is created, with mode 0700, by the first write. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  async size(file: RunFile): Promise<number> {
    return (await unlessMissing(stat(this.#pathOf(file))))?.size ?? 0;
  }

  async write(file: RunFile, { at, bytes, durable }: Parameters<RunStorage['write']>[1]): Promise<number> {
    try {
      const handle = await this.#openToWrite(file, durable);
      try {
        let position = at;
        for await (const chunk of bytes) {
          await writeAll(handle, chunk, position);
          position += chunk.byteLength;
        }
        const { size } = await handle.stat();
        if (durable) await handle.datasync();
        return size;
      } finally {
        await handle.close();
      }
    } catch (error) {
      throw diskError(error);
    }
  }

  async sync(file: RunFile): Promise<void> {
    const handle = await unlessMissing(open(this.#pathOf(file), constants.O_RDONLY | constants.O_NOFOLLOW));
    if (!handle) return;
    try {
      await handle.datasync();
    } finally {
      await handle.close();
    }
  }

  async read(file: RunFile, { start, bytesMax }: Parameters<RunStorage['read']>[1]): Promise<Uint8Array> {
    const handle = await unlessMissing(open(this.#pathOf(file), constants.O_RDONLY | constants.O_NOFOLLOW));
    if (!handle) return new Uint8Array();
    try {
      const { size } = await handle.stat();
      const length = Math.max(0, Math.min(bytesMax, size - start));
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(length), 0, length, start);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  }

  async remove(instanceId: string): Promise<void> {
    await rm(this.#folderOf(instanceId), { recursive: true, force: true });
  }

  async list(): Promise<readonly StoredRun[]> {
    const found: StoredRun[] = [];
    for (const instanceId of (await unlessMissing(readdir(this.#directory))) ?? []) {
      if (!instanceIdForm.test(instanceId)) continue; // no folder of ours
      const log = await this.size({ instanceId, part: 'log' });
      const artifacts = await this.size({ instanceId, part: 'artifacts' });
      found.push({ instanceId, bytes: log + artifacts });
    }
    return found;
  }

  async #openToWrite(file: RunFile, durable: boolean): Promise<FileHandle> {
    const path = this.#pathOf(file);
    const flags = constants.O_WRONLY | constants.O_NOFOLLOW;
    const known = await unlessMissing(open(path, flags));
    if (known) return known;
    const folder = this.#folderOf(file.instanceId);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const created = await open(path, flags | constants.O_CREAT, 0o600);
    if (!durable) return created;
    await syncDirectory(folder);
    await syncDirectory(this.#directory);
    return created;
  }

  #folderOf(instanceId: string): string {
    assert(instanceIdForm.test(instanceId), 'the id of an instance is the name of a folder');
    return join(this.#directory, instanceId);
  }

  #pathOf({ instanceId, part }: RunFile): string {
    return join(this.#folderOf(instanceId), fileNames[part]);
  }
}

async function writeAll(handle: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.byteLength; ) {
    const { bytesWritten } = await handle.write(chunk, done, chunk.byteLength - done, position + done);
    done += bytesWritten;
  }
}

async function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function diskError(error: unknown): unknown {
  const code = codeOf(error);
  if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'EFBIG') return error;
  return new ApiError('StoreFull', "the control plane's disk for logs and artifacts is full; free some space", {
    cause: error,
  });
}
