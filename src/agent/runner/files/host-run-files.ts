// The files of runs in a directory of the host: a folder for each instance. It must only touch folders with the name of an instance.

import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DriverError } from '../../host/driver-error.ts';
import { recordBytesMax, type RunFiles, type RunFolder, type RunPart } from './run-files.ts';

const instanceId = /^inst_[0-9a-z]{26}$/;
/** tar reads so much at a time. */
const tarRecordBytes = 10_240;
const pieceBytes = 1024 * 1024;

export function createHostRunFiles({ directory }: { readonly directory: string }): RunFiles {
  const folderOf = (id: string): string => {
    if (!instanceId.test(id)) throw new DriverError('Internal', `"${id}" is not the id of an instance`);
    return join(directory, id);
  };
  const make = async (id: string): Promise<string> => {
    const folder = folderOf(id);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return folder;
  };
  return {
    async list() {
      const names = await readdir(directory).catch((error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
        throw error;
      });
      return names.filter((name) => instanceId.test(name));
    },
    async open(id) {
      const folder = await make(id);
      const names = ['state', 'log', 'artifacts.tar'].map((name) => join(folder, name));
      const files = await Promise.all(names.map((name) => open(name, constants.O_RDWR | constants.O_CREAT, 0o600)));
      const [state, log, artifacts] = files;
      if (state === undefined || log === undefined || artifacts === undefined) throw new Error('three were opened');
      return new HostRunFolder(state, { log, artifacts });
    },
    async remove(id) {
      await rm(folderOf(id), { recursive: true, force: true });
    },
    async removeDisk(id) {
      await rm(join(folderOf(id), 'disk.raw'), { force: true });
    },
    async makeDisk(id, entries, addTree) {
      const folder = await make(id);
      const [path, whole, tree] = ['disk.raw', 'disk.tmp', 'tree.tar'].map((name) => join(folder, name));
      if (path === undefined || whole === undefined || tree === undefined) throw new Error('three were named');
      try {
        if (addTree !== undefined) await addTree(tree);
        await writeDisk(whole, entries, addTree === undefined ? undefined : tree);
        await rename(whole, path);
      } finally {
        await rm(tree, { force: true });
        await rm(whole, { force: true });
      }
      return path;
    },
  };
}

/** Entries without an end, then an archive with its own, up to where tar may read. */
async function writeDisk(path: string, entries: Uint8Array, tree: string | undefined): Promise<void> {
  const disk = await open(path, 'w', 0o600);
  try {
    await disk.write(entries);
    let size = entries.length;
    if (tree !== undefined) {
      const from = await open(tree, 'r');
      try {
        size += await append(disk, from);
      } finally {
        await from.close();
      }
    }
    await disk.truncate((Math.ceil(size / tarRecordBytes) + 1) * tarRecordBytes);
  } finally {
    await disk.close();
  }
}

async function append(disk: FileHandle, from: FileHandle): Promise<number> {
  const buffer = Buffer.allocUnsafe(pieceBytes);
  for (let size = 0; ; ) {
    const { bytesRead } = await from.read(buffer, 0, pieceBytes, size);
    if (bytesRead === 0) return size;
    await disk.writeFile(buffer.subarray(0, bytesRead));
    size += bytesRead;
  }
}

class HostRunFolder implements RunFolder {
  readonly #state: FileHandle;
  readonly #parts: Readonly<Record<RunPart, FileHandle>>;

  constructor(state: FileHandle, parts: Readonly<Record<RunPart, FileHandle>>) {
    this.#state = state;
    this.#parts = parts;
  }

  async readRecords(): Promise<readonly [Uint8Array, Uint8Array]> {
    const [first, second] = await Promise.all([0, 1].map((place) => piece(this.#state, place * recordBytesMax)));
    return [first ?? Buffer.alloc(0), second ?? Buffer.alloc(0)];
  }

  async writeRecord(place: 0 | 1, bytes: Uint8Array): Promise<void> {
    await writeAll(this.#state, place * recordBytesMax, bytes);
  }

  async size(part: RunPart): Promise<number> {
    return (await this.#parts[part].stat()).size;
  }

  async truncate(part: RunPart, size: number): Promise<void> {
    await this.#parts[part].truncate(size);
  }

  async write(part: RunPart, offset: number, bytes: Uint8Array): Promise<void> {
    await writeAll(this.#parts[part], offset, bytes);
  }

  async read(part: RunPart, offset: number, limit: number): Promise<Uint8Array<ArrayBuffer>> {
    return piece(this.#parts[part], offset, limit);
  }

  async close(): Promise<void> {
    await Promise.all([this.#state, ...Object.values(this.#parts)].map((file) => file.close()));
  }
}

async function writeAll(file: FileHandle, offset: number, bytes: Uint8Array): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, offset + done);
    done += bytesWritten;
  }
}

async function piece(file: FileHandle, offset: number, limit = recordBytesMax): Promise<Uint8Array<ArrayBuffer>> {
  const buffer = new Uint8Array(limit);
  let done = 0;
  for (;;) {
    const { bytesRead } = await file.read(buffer, done, limit - done, offset + done);
    done += bytesRead;
    if (bytesRead === 0 || done === limit) return buffer.subarray(0, done);
  }
}
