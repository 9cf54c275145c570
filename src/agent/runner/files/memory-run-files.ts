// The files of runs in memory, for hosts whose guests are only pretended, the simulator and tests. What is in `disk` survives an agent.

import { recordBytesMax, type RunFiles, type RunFolder, type RunPart } from './run-files.ts';

type Name = RunPart | 'state' | 'disk';
/** By instance. */
export type RunMemory = Map<string, Map<Name, Uint8Array<ArrayBuffer>>>;

/** `addTree` is asked, and what it writes is not on the disk: there is no file system for it. */
export function createMemoryRunFiles(disk: RunMemory = new Map()): RunFiles {
  const folderOf = (instanceId: string): Map<Name, Uint8Array<ArrayBuffer>> => {
    const folder = disk.get(instanceId) ?? new Map<Name, Uint8Array<ArrayBuffer>>();
    disk.set(instanceId, folder);
    return folder;
  };
  return {
    list: () => Promise.resolve([...disk.keys()]),
    open: (instanceId) => Promise.resolve(new MemoryRunFolder(folderOf(instanceId))),
    remove(instanceId) {
      disk.delete(instanceId);
      return Promise.resolve();
    },
    removeDisk(instanceId) {
      folderOf(instanceId).delete('disk');
      return Promise.resolve();
    },
    async makeDisk(instanceId, entries, addTree) {
      await addTree?.(`/memory/runs/${instanceId}/tree.tar`);
      folderOf(instanceId).set('disk', Uint8Array.from(entries));
      return `/memory/runs/${instanceId}/disk.raw`;
    },
  };
}

/** What a pretended guest reads of the path that `makeDisk` resolved to. */
export function readMemoryDisk(disk: RunMemory, path: string): Uint8Array {
  const [, , , instanceId = ''] = path.split('/');
  const bytes = disk.get(instanceId)?.get('disk');
  if (bytes === undefined) throw new Error(`${path} is not there`);
  return bytes;
}

const nothing = new Uint8Array(0);

class MemoryRunFolder implements RunFolder {
  readonly #files: Map<Name, Uint8Array<ArrayBuffer>>;

  constructor(files: Map<Name, Uint8Array<ArrayBuffer>>) {
    this.#files = files;
  }

  readRecords(): Promise<readonly [Uint8Array, Uint8Array]> {
    const state = this.#files.get('state') ?? nothing;
    return Promise.resolve([state.slice(0, recordBytesMax), state.slice(recordBytesMax)]);
  }

  writeRecord(place: 0 | 1, bytes: Uint8Array): Promise<void> {
    this.#put('state', place * recordBytesMax, bytes);
    return Promise.resolve();
  }

  size(part: RunPart): Promise<number> {
    return Promise.resolve(this.#files.get(part)?.length ?? 0);
  }

  truncate(part: RunPart, size: number): Promise<void> {
    this.#files.set(part, (this.#files.get(part) ?? nothing).slice(0, size));
    return Promise.resolve();
  }

  write(part: RunPart, offset: number, bytes: Uint8Array): Promise<void> {
    this.#put(part, offset, bytes);
    return Promise.resolve();
  }

  read(part: RunPart, offset: number, limit: number): Promise<Uint8Array<ArrayBuffer>> {
    return Promise.resolve((this.#files.get(part) ?? nothing).slice(offset, offset + limit));
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #put(name: Name, offset: number, bytes: Uint8Array): void {
    const before = this.#files.get(name) ?? nothing;
    const after = new Uint8Array(Math.max(before.length, offset + bytes.length));
    after.set(before);
    after.set(bytes, offset);
    this.#files.set(name, after);
  }
}
