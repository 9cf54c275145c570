// The disks of guests as ZFS volumes: one volume an image, filled once and snapshotted, and a clone of the snapshot for each guest. The
// snapshot is what says that an image is whole. Touches no volume that does not bear our mark, a user property (zfs(8), "User Properties").

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError, type Logger } from '../../../base/log.ts';
import type { CachedImage } from '../../images/image-cache.ts';
import { DriverError } from '../../host/driver-error.ts';
import { command, type RunCommand } from './commands.ts';

export interface Volumes {
  /** The name of a guest's volume, there or not: `rpool/berth/disk-inst_...`. */
  nameOf(instanceId: string): string;
  /** Makes it what was asked for, or finds it so. Throws `DriverError`. */
  ensureDisk(call: {
    readonly instanceId: string;
    readonly uuid: string;
    readonly image: CachedImage;
    /** Of the disk; never smaller than the image. */
    readonly sizeBytes: number;
    readonly signal: AbortSignal;
  }): Promise<void>;
  /** `uuid` missing: of whichever life of the instance it is. Harmless when there is none, or it is somebody else's. */
  removeDisk(call: { readonly instanceId: string; readonly uuid?: string }): Promise<void>;
}

interface Volume {
  readonly sizeBytes: number;
  /** Of a snapshot: whether it has any. */
  readonly cloned: boolean;
  readonly guest?: string;
  readonly image?: string;
}

/** Of an image's volume, for all who wait for it. */
interface Making {
  readonly made: Promise<void>;
  /** Aborts when nobody waits any more. */
  readonly unwanted: AbortController;
  waiters: number;
}

const marks = { guest: 'berth:guest', image: 'berth:image' } as const;
/** Whole mebibytes: a multiple of every block size of volumes, and what dd(8) fills up to. */
const unitBytes = 1024 ** 2;
/** 10 GiB at 10 MB/s and some more. */
const copyTimeoutMs = 30 * 60_000;

export function createVolumes({
  run,
  dataset,
  root,
  qemuImg,
  log,
}: {
  readonly run: RunCommand;
  /** The ZFS file system that is ours: `rpool/berth`. */
  readonly dataset: string;
  readonly root: () => Promise<string>;
  readonly qemuImg: string;
  readonly log: Logger;
}): Volumes {
  const nameOf = (instanceId: string): string => `${dataset}/disk-${instanceId}`;
  const imageName = (digest: string): string => `${dataset}/image-${digest.replace(/^sha256:/, '').slice(0, 32)}`;
  /** Guests of one image that come at once share its making. */
  const making = new Map<string, Making>();
  /** Images that somebody is about to clone, and by how many. */
  const wanted = new Map<string, number>();
  const dropping = new Map<string, Promise<void>>();

  const zfs = (what: string, words: readonly string[], signal?: AbortSignal): Promise<string> =>
    command(run, { what, program: 'zfs', arguments: words, ...(signal === undefined ? {} : { signal }) });

  const list = async (what: string): Promise<ReadonlyMap<string, Volume>> => {
    const columns = `name,volsize,clones,${marks.guest},${marks.image}`;
    const text = await zfs(what, ['list', '-H', '-p', '-r', '-t', 'volume,snapshot', '-o', columns, dataset]);
    return parseVolumes(text);
  };

  const destroy = (what: string, name: string): Promise<string> => zfs(what, ['destroy', '-r', name]); // -r: with its snapshots

  /** Those that no guest's disk is a clone of, and that nobody is about to clone. Without them a host would fill up with old images. */
  const dropUnused = async (volumes: ReadonlyMap<string, Volume>): Promise<void> => {
    for (const [name, { image }] of volumes) {
      if (image === undefined || name.includes('@') || wanted.has(name) || making.has(name)) continue;
      if (volumes.get(readyOf(name))?.cloned === true) continue;
      const dropped = destroy(`cannot drop the unused image volume ${name}`, name)
        .then(
          () => {},
          (error: unknown) => log.warn('an unused image volume stays', { volume: name, error: describeError(error) }),
        )
        .finally(() => dropping.delete(name));
      dropping.set(name, dropped);
      await dropped;
    }
  };

  const makeImage = async (what: string, image: CachedImage, signal: AbortSignal): Promise<void> => {
    const name = imageName(image.digest);
    const before = await list(what); // nobody else makes it from now on, but somebody just may have
    if (isReady(image, before)) return;
    const half = before.get(name);
    if (half !== undefined) {
      if (half.image !== image.digest) throw foreign(what, name);
      await destroy(what, name); // whoever filled it died before it was whole
    }
    await dropUnused(before);
    const size = String(wholeUnits(image.virtualSizeBytes));
    // -s: room is taken as it is filled (zfs(8), "create").
    await zfs(what, ['create', '-s', '-o', `${marks.image}=${image.digest}`, '-V', size, name], signal);
    try {
      await fill({ what, image, name, signal });
      await zfs(what, ['snapshot', readyOf(name)], signal);
    } catch (error) {
      await destroy(what, name).catch(() => {}); // the next try does it; what counts is why this one failed
      throw error;
    }
  };

  const isReady = (image: CachedImage, volumes: ReadonlyMap<string, Volume>): boolean =>
    volumes.get(readyOf(imageName(image.digest)))?.image === image.digest;

  const fill = async ({
    what,
    image,
    name,
    signal,
  }: {
    readonly what: string;
    readonly image: CachedImage;
    readonly name: string;
    readonly signal: AbortSignal;
  }): Promise<void> => {
    const device = `/dev/zvol/rdsk/${name}`;
    const copy = (from: string): Promise<string> =>
      command(run, {
        what,
        program: 'dd',
        // sync: a raw device takes whole blocks only, so the last one is filled up with zeros (dd(8)).
        arguments: [`if=${from}`, `of=${device}`, `bs=${unitBytes}`, 'conv=sync'],
        timeoutMs: copyTimeoutMs,
        signal,
      });
    if (image.format === 'raw') return void (await copy(image.path));
    const unpacked = join(await root(), `${name.slice(name.lastIndexOf('/') + 1)}.raw`);
    try {
      await command(run, {
        what,
        program: qemuImg,
        arguments: ['convert', '-f', image.format, '-O', 'raw', image.path, unpacked],
        timeoutMs: copyTimeoutMs,
        signal,
      });
      await copy(unpacked);
    } finally {
      await rm(unpacked, { force: true });
    }
  };

  const ensureImage = async ({
    what,
    image,
    before,
    signal,
  }: {
    readonly what: string;
    readonly image: CachedImage;
    /** May be older than what another has made meanwhile. */
    readonly before: ReadonlyMap<string, Volume>;
    readonly signal: AbortSignal;
  }): Promise<void> => {
    const name = imageName(image.digest);
    if (isReady(image, before)) return;
    let under = making.get(name);
    while (under?.unwanted.signal.aborted === true) {
      await under.made.catch(() => {}); // it was given up, and takes back what it had made
      under = making.get(name);
    }
    if (under === undefined) {
      const unwanted = new AbortController();
      const made = makeImage(what, image, unwanted.signal).finally(() => making.delete(name));
      under = { made, unwanted, waiters: 0 };
      making.set(name, under);
    }
    await awaitMaking(under, what, signal);
  };

  return {
    nameOf,
    async ensureDisk({ instanceId, uuid, image, sizeBytes, signal }) {
      const name = nameOf(instanceId);
      const origin = imageName(image.digest);
      const what = `cannot make the disk of ${instanceId}`;
      wanted.set(origin, (wanted.get(origin) ?? 0) + 1); // from here on nobody drops it
      try {
        await dropping.get(origin);
        const before = await list(what);
        const disk = before.get(name);
        if (disk === undefined) {
          await ensureImage({ what, image, before, signal });
          await zfs(what, ['clone', '-o', `${marks.guest}=${uuid}`, readyOf(origin), name]);
        } else if (disk.guest !== uuid) throw foreign(what, name);
        const size = wholeUnits(Math.max(sizeBytes, image.virtualSizeBytes));
        if (size > (disk?.sizeBytes ?? wholeUnits(image.virtualSizeBytes)))
          await zfs(what, ['set', `volsize=${size}`, name]);
      } finally {
        const others = (wanted.get(origin) ?? 1) - 1;
        if (others === 0) wanted.delete(origin);
        else wanted.set(origin, others);
      }
    },
    async removeDisk({ instanceId, uuid }) {
      const name = nameOf(instanceId);
      const what = `cannot remove the disk of ${instanceId}`;
      const disk = (await list(what)).get(name);
      if (disk === undefined) return;
      if (disk.guest === undefined || (uuid !== undefined && disk.guest !== uuid)) {
        log.error('a volume with the name of a guest is not ours, and is left alone', { volume: name });
        return;
      }
      await destroy(what, name);
    },
  };
}

/** Of volumes and their snapshots, by name: tab-separated, `-` for what is not there (zfs(8), "list"). */
export function parseVolumes(text: string): ReadonlyMap<string, Volume> {
  const volumes = new Map<string, Volume>();
  for (const line of text.split('\n')) {
    const [name, size, clones, guest, image] = line.split('\t');
    if (name === undefined || size === undefined || clones === undefined || image === undefined) continue;
    volumes.set(name, {
      sizeBytes: Number(size) || 0, // a snapshot has none in older releases
      cloned: clones !== '-' && clones !== '',
      ...(guest === undefined || guest === '-' ? {} : { guest }),
      ...(image === '-' ? {} : { image }),
    });
  }
  return volumes;
}

const readyOf = (volume: string): string => `${volume}@ready`;

const wholeUnits = (bytes: number): number => Math.ceil(bytes / unitBytes) * unitBytes;

const foreign = (what: string, name: string): DriverError =>
  new DriverError(
    'HypervisorFailed',
    `${what}: the volume ${name} is there and was made by somebody else; remove or rename it`,
  );

/** Whoever is aborted leaves the others to it; the last one to leave ends it, and leaves when that is done. */
async function awaitMaking(making: Making, what: string, signal: AbortSignal): Promise<void> {
  const left = Promise.withResolvers<void>();
  const leave = (): void => {
    making.waiters--;
    if (making.waiters === 0) making.unwanted.abort();
    else left.resolve();
  };
  making.waiters++;
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  try {
    await Promise.race([making.made, left.promise]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
  if (signal.aborted) throw new DriverError('Aborted', `${what}: it was given up`);
}
