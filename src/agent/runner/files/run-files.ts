// The seam between runs and the files that they have on this host. It never decides what a run is.

/** What a host keeps of a run's output until the control plane has it. */
export type RunPart = 'log' | 'artifacts';

export interface RunFiles {
  /** Ids of the instances that have a folder. */
  list(): Promise<readonly string[]>;
  /** Makes it when there is none. */
  open(instanceId: string): Promise<RunFolder>;
  /** Harmless when there is none. */
  remove(instanceId: string): Promise<void>;
  /** Makes the disk of a run whole, in its folder, and resolves to its path. `addTree` writes a tar archive to a path, whose entries are added. */
  makeDisk(instanceId: string, entries: Uint8Array, addTree?: (path: string) => Promise<void>): Promise<string>;
  /** The guest has its copy. Harmless when there is none. */
  removeDisk(instanceId: string): Promise<void>;
}

/** One caller at a time, but `read`. */
export interface RunFolder {
  /** The content of the two places for the record; empty where nothing was written. */
  readRecords(): Promise<readonly [Uint8Array, Uint8Array]>;
  writeRecord(place: 0 | 1, bytes: Uint8Array): Promise<void>;
  size(part: RunPart): Promise<number>;
  truncate(part: RunPart, size: number): Promise<void>;
  write(part: RunPart, offset: number, bytes: Uint8Array): Promise<void>;
  /** At most `limit` bytes; fewer only at the end. */
  read(part: RunPart, offset: number, limit: number): Promise<Uint8Array<ArrayBuffer>>;
  close(): Promise<void>;
}

/** Each of the two places for the record. */
export const recordBytesMax = 4096;
