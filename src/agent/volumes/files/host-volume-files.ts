// Volumes as files of this host, a folder each: VOLUMES/<id>/disk.qcow2, or a file system as in filesystem-volume.ts. A file gets this name only when it is complete
// and durable. An agent that dies before leaves a file under another name, which the next attempt removes.

import { link, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { sync } from '../../host/sync.ts';
import type { DiskReader, ReceivedFile } from '../../migration/moved-files.ts';
import { openDisk } from '../../migration/open-disk.ts';
import { FilesystemVolume, filesystemFile, lookAtFilesystem } from './filesystem-volume.ts';
import { lookAtQcow2 } from './qcow2-volume.ts';
import { type NewVolume, VolumeError, type VolumeFiles, volumeIdPattern, type VolumeLook } from './volume-files.ts';
import { noRoom, VolumeQemuImg } from './volume-qemu-img.ts';

export interface HostVolumeFilesOptions {
  /** Holds volumes only. */
  readonly directory: string;
  /** Of it and of the volumes' folders: 0o711 where guests run as another user. */
  readonly directoryMode: 0o700 | 0o711;
  readonly clock: Clock;
  readonly qemuImgProgram?: string;
}

const diskFile = 'disk.qcow2';
const unfinishedFile = 'disk.qcow2.new';

export function createHostVolumeFiles(options: HostVolumeFilesOptions): VolumeFiles {
  return new HostVolumeFiles(options);
}

class HostVolumeFiles implements VolumeFiles {
  readonly #directory: string;
  readonly #directoryMode: number;
  readonly #clock: Clock;
  readonly #qemuImg: VolumeQemuImg;

  constructor({ directory, directoryMode, clock, qemuImgProgram = 'qemu-img' }: HostVolumeFilesOptions) {
    this.#directory = directory;
    this.#directoryMode = directoryMode;
    this.#clock = clock;
    this.#qemuImg = new VolumeQemuImg({ clock, program: qemuImgProgram, directory });
  }

  pathOf(volumeId: string, format?: 'filesystem'): string {
    return join(this.#folderOf(volumeId), format === undefined ? diskFile : filesystemFile);
  }

  async look(volumeId: string): Promise<VolumeLook> {
    const folder = this.#folderOf(volumeId);
    for (const lookAt of [() => lookAtQcow2(this.pathOf(volumeId)), () => lookAtFilesystem(folder)])
      try {
        return await lookAt();
      } catch (error) {
        if (codeOf(error) === 'ELOOP') return { found: 'damage', why: 'it is a symbolic link' };
        if (codeOf(error) !== 'ENOENT') throw error;
      }
    const left = await readdir(folder).catch((error: unknown) => {
      if (codeOf(error) === 'ENOENT') return undefined;
      throw error;
    });
    return { found: left === undefined ? 'nothing' : 'unfinished' };
  }

  async list(): Promise<readonly string[]> {
    const names = await this.#asVolumeError('list the volumes', () => readdir(this.#directory)).catch(
      (error: unknown) => {
        if (error instanceof VolumeError && codeOf(error.cause) === 'ENOENT') return [];
        throw error;
      },
    );
    return names.filter((name) => volumeIdPattern.test(name)).sort();
  }

  make(volume: NewVolume, signal: AbortSignal): Promise<void> {
    return this.#asVolumeError(`make volume ${volume.volumeId}`, async () => {
      const before = await this.look(volume.volumeId);
      if (before.found === 'volume' || before.found === 'damage') return;
      await this.#makeNow(volume, signal);
    });
  }

  grow(volumeId: string, sizeBytes: number): Promise<void> {
    const what = `grow volume ${volumeId}`;
    return this.#asVolumeError(what, async () => {
      const before = await this.look(volumeId);
      if (before.found === 'volume' && before.sizeBytes >= sizeBytes) return;
      if (isFilesystem(before)) return this.#filesystem(volumeId).grow(`cannot ${what}`, sizeBytes);
      await this.#qemuImg.resize(`cannot ${what}`, `${volumeId}/${diskFile}`, sizeBytes);
      await sync(this.pathOf(volumeId));
    });
  }

  snapshot(volumeId: string, act: 'make' | 'remove', name: string): Promise<void> {
    const what = `${act} snapshot "${name}" of volume ${volumeId}`;
    return this.#asVolumeError(what, async () => {
      const before = await this.look(volumeId);
      const there = before.found === 'volume' && before.snapshots.some((each) => each.name === name);
      if (there === (act === 'make')) return;
      if (isFilesystem(before)) return this.#filesystem(volumeId).snapshot(`cannot ${what}`, act, name);
      await this.#qemuImg.snapshot(`cannot ${what}`, `${volumeId}/${diskFile}`, { act, name });
      await sync(this.pathOf(volumeId));
    });
  }

  openRead(volumeId: string): Promise<DiskReader> {
    const what = `read volume ${volumeId}`;
    return this.#asVolumeError(what, async () => {
      await this.#qemuImg.assertUnused(`cannot ${what}`, `${volumeId}/${diskFile}`);
      return openDisk(this.pathOf(volumeId));
    });
  }

  /** A file that names another would have the next program read that one. */
  async check(received: ReceivedFile, signal: AbortSignal): Promise<void> {
    const look = await lookAtQcow2(received.path);
    if (look.found !== 'volume') throw new DriverError('ImageInvalid', 'a file that was received is no volume');
    const sound = await this.#qemuImg.check(received.path, signal);
    if (signal.aborted) throw new DriverError('Aborted', 'the check of a volume was given up');
    if (!sound) throw new DriverError('ImageInvalid', 'a volume that was received is damaged');
  }

  makeEmpty(path: string, sizeBytes: number, signal: AbortSignal): Promise<void> {
    return this.#asVolumeError(`make ${path}`, async () => {
      await this.#qemuImg.create(`cannot make ${path}`, path, { sizeBytes, signal });
      await sync(path, (file) => file.chmod(0o600));
    });
  }

  adopt(volumeId: string, received: ReceivedFile): Promise<void> {
    return this.#asVolumeError(`take over volume ${volumeId}`, async () => {
      const folder = this.#folderOf(volumeId);
      const unfinished = join(folder, unfinishedFile);
      await mkdir(folder, { recursive: true, mode: this.#directoryMode });
      await rm(unfinished, { recursive: true, force: true });
      await link(received.path, unfinished);
      await sync(unfinished, (file) => file.chmod(0o600));
      await rename(unfinished, join(folder, diskFile));
      await sync(folder);
      await sync(this.#directory);
    });
  }

  remove(volumeId: string): Promise<void> {
    const what = `remove volume ${volumeId}`;
    return this.#asVolumeError(what, async () => {
      const before = await this.look(volumeId);
      if (before.found === 'volume' && !isFilesystem(before))
        await this.#qemuImg.assertUnused(`cannot ${what}`, `${volumeId}/${diskFile}`);
      else await this.#filesystem(volumeId).release(`cannot ${what}`); // a damaged volume may be mounted
      await rm(this.#folderOf(volumeId), { recursive: true, force: true });
      if (before.found !== 'nothing') await sync(this.#directory);
    });
  }

  async #makeNow(volume: NewVolume, signal: AbortSignal): Promise<void> {
    const { volumeId } = volume;
    const folder = this.#folderOf(volumeId);
    const unfinished = join(folder, unfinishedFile);
    await mkdir(folder, { recursive: true, mode: this.#directoryMode });
    await rm(unfinished, { recursive: true, force: true });
    const what = `cannot make volume ${volumeId}`;
    if (volume.format === 'filesystem') {
      if (volume.source) await this.#assertSnapshot(what, volume.source);
      const from = volume.source && this.#folderOf(volume.source.volumeId);
      await this.#filesystem(volumeId).make(what, volume, from, signal);
      return sync(this.#directory);
    }
    try {
      await this.#fill(what, volume, signal);
      // qemu-img leaves the mode to the umask.
      await sync(unfinished, (file) => file.chmod(0o600));
      if (signal.aborted) throw new VolumeError('Aborted', `${what}: it was given up`);
      await rename(unfinished, join(folder, diskFile));
      await sync(folder);
      await sync(this.#directory);
    } catch (error) {
      await rm(unfinished, { force: true }).catch(() => {}); // the next attempt removes it
      throw error;
    }
  }

  async #fill(what: string, { volumeId, sizeBytes, source }: NewVolume, signal: AbortSignal): Promise<void> {
    const file = `${volumeId}/${unfinishedFile}`;
    if (source === undefined) return this.#qemuImg.create(what, file, { sizeBytes, signal });
    await this.#assertSnapshot(what, source);
    const { snapshot } = source;
    await this.#qemuImg.copy(what, { from: `${source.volumeId}/${diskFile}`, snapshot, to: file, signal });
    const copied = await lookAtQcow2(join(this.#folderOf(volumeId), unfinishedFile));
    if (copied.found === 'volume' && copied.sizeBytes < sizeBytes) await this.#qemuImg.resize(what, file, sizeBytes);
  }

  async #assertSnapshot(what: string, { volumeId, snapshot }: NonNullable<NewVolume['source']>): Promise<void> {
    const origin = await this.look(volumeId);
    if (origin.found === 'damage')
      throw new VolumeError('SourceMissing', `${what}: volume ${volumeId} cannot be read: ${origin.why}`);
    if (origin.found === 'volume' && origin.snapshots.some(({ name }) => name === snapshot)) return;
    const missing = `there is no snapshot "${snapshot}" of volume ${volumeId} on this host`;
    throw new VolumeError('SourceMissing', `${what}: ${missing}`);
  }

  #filesystem(volumeId: string): FilesystemVolume {
    return new FilesystemVolume(this.#clock, this.#folderOf(volumeId));
  }

  #folderOf(volumeId: string): string {
    if (!volumeIdPattern.test(volumeId)) throw new VolumeError('Internal', `"${volumeId}" is not a volume's id`);
    return join(this.#directory, volumeId);
  }

  /** Every failure of `act` becomes a `VolumeError`. */
  async #asVolumeError<Result>(what: string, act: () => Promise<Result>): Promise<Result> {
    try {
      return await act();
    } catch (error) {
      if (error instanceof VolumeError) throw error;
      const full = codeOf(error) === 'ENOSPC' || codeOf(error) === 'EDQUOT';
      const why = full ? noRoom(this.#directory) : describeError(error);
      throw new VolumeError(full ? 'DiskFull' : 'Internal', `cannot ${what}: ${why}`, error);
    }
  }
}

function isFilesystem(look: VolumeLook): boolean {
  return look.found === 'volume' && look.format === 'filesystem';
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
