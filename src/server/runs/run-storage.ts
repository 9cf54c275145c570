// Where the files of runs are: a directory (directory-run-storage.ts) or memory (memory-run-storage.ts). Both pass
// run-files.test.ts. The rules of offsets and limits are those of run-files.ts.

/** The log of a run, or its artifacts as a tar archive. */
export type RunPart = 'log' | 'artifacts';

export interface RunFile {
  /** Id of the instance that the run belongs to. */
  readonly instanceId: string;
  readonly part: RunPart;
}

export interface StoredRun {
  readonly instanceId: string;
  /** Of all its files. */
  readonly bytes: number;
}

export interface RunStorage {
  /** 0: there is no such file. */
  size(file: RunFile): Promise<number>;
  /**
   * Writes at position `at`, which is not after the end, and returns the size of the file afterwards. What was written when `bytes`
   * throws stays. Written bytes survive the end of the process; with `durable` also the end of the machine.
   */
  write(
    file: RunFile,
    what: { readonly at: number; readonly bytes: AsyncIterable<Uint8Array>; readonly durable: boolean },
  ): Promise<number>;
  /** Makes durable what was written. */
  sync(file: RunFile): Promise<void>;
  /** At most `bytesMax` bytes from `start` on; empty at the end of the file. */
  read(file: RunFile, range: { readonly start: number; readonly bytesMax: number }): Promise<Uint8Array>;
  /** Removes all files of the run. Harmless when there are none. */
  remove(instanceId: string): Promise<void>;
  list(): Promise<readonly StoredRun[]>;
}
