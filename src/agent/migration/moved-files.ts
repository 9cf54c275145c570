// The seam between the move of a guest and the disks of its two hosts. What moves is a handful of files: the guest's own disk, and its volumes by
// their ids. Bytes are copied, never converted: conversion would lose the snapshots inside of a volume.

/** A file that is read piece by piece, and that nothing changes meanwhile. */
export interface DiskReader {
  readonly sizeBytes: number;
  /** `length` bytes, fewer only at the end of the file. */
  read(offset: number, length: number): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** A file that was received whole. */
export interface ReceivedFile {
  readonly path: string;
  /** Of pretended disks, which are small. */
  bytes(): Promise<Uint8Array>;
  /** For simulated disks. */
  write(bytes: Uint8Array): void;
  open(): Promise<DiskReader>;
}

/** The name of the guest's own disk among the files of a move. */
export const diskName = 'disk';

/** What moves to this host. */
export interface Incoming {
  readonly instanceId: string;
  readonly incarnation: number;
}

export interface IncomingLook {
  /** Of the move. */
  readonly id: string;
  readonly files: readonly { readonly name: string; readonly sizeBytes: number; readonly doneBytes: number }[];
  /** All files are here, checked and durable. */
  readonly whole: boolean;
}

/** Every call makes one change, durable when it resolves. */
export interface IncomingFiles {
  list(): Promise<readonly (Incoming & IncomingLook)[]>;
  look(incoming: Incoming): Promise<IncomingLook | undefined>;
  /** Makes empty files for what is to come, in the place of what another move left. */
  begin(incoming: Incoming, look: IncomingLook): Promise<void>;
  /** Prepares files that a driver fills. Replaces the files of an earlier move. */
  expect(incoming: Incoming, look: IncomingLook): Promise<void>;
  /** `bytes` undefined: `length` zeros. They begin where the file ended. */
  append(
    incoming: Incoming,
    piece: { readonly name: string; readonly length: number; readonly bytes?: Uint8Array },
  ): Promise<void>;
  /** Marks the files as complete and verified. Idempotent. */
  finish(incoming: Incoming): Promise<void>;
  fileOf(incoming: Incoming, name: string): ReceivedFile;
  discard(incoming: Incoming): Promise<void>;
}
