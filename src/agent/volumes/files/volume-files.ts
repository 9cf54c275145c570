// The seam between what a volume should be and the disk it is on. Each call makes one change, whole or not at all, and durable when it
// resolves; it never decides anything, and touches only the volume it is called for.

import type { VolumeSnapshot } from '../../../api/resources/volume.ts';
import type { DiskReader, ReceivedFile } from '../../migration/moved-files.ts';

export type VolumeLook =
  | { readonly found: 'nothing' }
  /** What an interrupted making left: it holds nothing of anybody's. */
  | { readonly found: 'unfinished' }
  /** There is a file, and it is no volume of ours: it is left alone. */
  | { readonly found: 'damage'; readonly why: string }
  | FoundVolume;

export interface FoundVolume {
  readonly found: 'volume';
  /** As a guest sees it. */
  readonly sizeBytes: number;
  /** Of the host, snapshots included. */
  readonly usedBytes: number;
  /** By name. */
  readonly snapshots: readonly VolumeSnapshot[];
  /** Absent: a disk. */
  readonly format?: 'filesystem';
}

export interface NewVolume {
  readonly volumeId: string;
  readonly sizeBytes: number;
  /** A file system for containers; absent: a disk for virtual machines. */
  readonly format?: 'filesystem';
  /** It begins as a copy of this, and is as large when that is larger. */
  readonly source?: { readonly volumeId: string; readonly snapshot: string };
}

/** Every function but `pathOf` and `look` throws `VolumeError`. */
export interface VolumeFiles {
  /** Where the file of a volume of this format is, or would be. */
  pathOf(volumeId: string, format?: 'filesystem'): string;
  /** Ids of all that anything is here of. */
  list(): Promise<readonly string[]>;
  /** Also while a guest has it open. Throws when the disk cannot be read. */
  look(volumeId: string): Promise<VolumeLook>;
  /** Harmless when it is there. Aborting `signal` leaves nothing but what the next try clears away. */
  make(volume: NewVolume, signal: AbortSignal): Promise<void>;
  /** Of a volume that no guest has open, as all that follow. Never makes it smaller. */
  grow(volumeId: string, sizeBytes: number): Promise<void>;
  snapshot(volumeId: string, act: 'make' | 'remove', name: string): Promise<void>;
  /** For copying; of a volume that no guest has open. */
  openRead(volumeId: string): Promise<DiskReader>;
  /** Whether a file that was received for a volume is sound. Throws when it is not. */
  check(received: ReceivedFile, signal: AbortSignal): Promise<void>;
  /** Creates an empty disk at `path`, to receive a volume in a live move. */
  makeEmpty(path: string, sizeBytes: number, signal: AbortSignal): Promise<void>;
  /** The volume is this file from now on, which stays where it is as well. Harmless when it is there. */
  adopt(volumeId: string, received: ReceivedFile): Promise<void>;
  /** With all its snapshots, and with what an interrupted making left. Harmless when there is nothing. */
  remove(volumeId: string): Promise<void>;
}

export const volumeErrorCodes = [
  'DiskFull',
  'InUse', // somebody has the file open
  'SourceMissing', // what it is to be a copy of is not here
  'Aborted',
  'Internal',
] as const;
export type VolumeErrorCode = (typeof volumeErrorCodes)[number];

export class VolumeError extends Error {
  override name = 'VolumeError';
  readonly code: VolumeErrorCode;
  constructor(code: VolumeErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

export const volumeIdPattern = /^vol_[0-9a-z]{26}$/;

/** What a snapshot is called inside the file: never a number, as QEMU's own ids are, and never what looks like an option. */
export const snapshotTag = (name: string): string => `${tagPrefix}${name}`;

/** Undefined: it is not one of ours. */
export const snapshotName = (tag: string): string | undefined =>
  tag.startsWith(tagPrefix) ? tag.slice(tagPrefix.length) : undefined;

const tagPrefix = 'berth-';
