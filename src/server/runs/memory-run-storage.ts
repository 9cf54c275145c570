// The files of runs in memory, for the simulator and for tests. Several control planes may share one.

import type { RunFile, RunStorage, StoredRun } from './run-storage.ts';

export class MemoryRunStorage implements RunStorage {
  /** By `nameOf`. */
  readonly #files = new Map<string, Buffer>();

  /** All of it, at once. */
  textOf(file: RunFile): string {
    return this.#of(file).toString();
  }

  size(file: RunFile): Promise<number> {
    return Promise.resolve(this.#of(file).byteLength);
  }

  async write(file: RunFile, { at, bytes }: Parameters<RunStorage['write']>[1]): Promise<number> {
    let position = at;
    for await (const chunk of bytes) {
      const known = this.#of(file);
      const next = Buffer.alloc(Math.max(known.byteLength, position + chunk.byteLength));
      next.set(known);
      next.set(chunk, position);
      this.#files.set(nameOf(file), next);
      position += chunk.byteLength;
    }
    return this.#of(file).byteLength;
  }

  sync(): Promise<void> {
    return Promise.resolve();
  }

  read(file: RunFile, { start, bytesMax }: Parameters<RunStorage['read']>[1]): Promise<Uint8Array> {
    return Promise.resolve(this.#of(file).subarray(start, start + bytesMax));
  }

  remove(instanceId: string): Promise<void> {
    for (const part of ['log', 'artifacts'] as const) this.#files.delete(nameOf({ instanceId, part }));
    return Promise.resolve();
  }

  list(): Promise<readonly StoredRun[]> {
    const bytesById = new Map<string, number>();
    for (const [name, content] of this.#files) {
      const instanceId = name.slice(0, name.indexOf('/'));
      bytesById.set(instanceId, (bytesById.get(instanceId) ?? 0) + content.byteLength);
    }
    return Promise.resolve([...bytesById].map(([instanceId, bytes]) => ({ instanceId, bytes })));
  }

  #of(file: RunFile): Buffer {
    return this.#files.get(nameOf(file)) ?? nothing;
  }
}

const nothing = Buffer.alloc(0);

function nameOf({ instanceId, part }: RunFile): string {
  return `${instanceId}/${part}`;
}
