// One ZFS volume for each image, filled once and then snapshotted. The snapshot says that the volume is complete. Guests of
// one image that are created at the same time share its making (single-flight). Unused image volumes are dropped.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { CachedImage } from '../../images/image-cache.ts';
import { command, type RunCommand } from './commands.ts';
import { foreign, marks, readyOf, unitBytes, wholeUnits, type ZfsDataset, type ZfsVolumes } from './zfs-dataset.ts';

/** The making of an image's volume, shared by all callers that wait for it. */
interface Making {
  readonly made: Promise<void>;
  /** Aborts when no caller waits any more. */
  readonly unwanted: AbortController;
  waiters: number;
}

export interface ImageVolumesOptions {
  readonly run: RunCommand;
  readonly dataset: ZfsDataset;
  readonly root: () => Promise<string>;
  readonly qemuImg: string;
  readonly log: Logger;
}

/** 10 GiB at 10 MB/s and some more. */
const copyTimeoutMs = 30 * 60_000;

export class ImageVolumes {
  readonly #options: ImageVolumesOptions;
  readonly #dataset: ZfsDataset;
  readonly #making = new Map<string, Making>();
  /** Images that are about to be cloned, and by how many guests. */
  readonly #held = new Map<string, number>();
  readonly #dropping = new Map<string, Promise<void>>();

  constructor(options: ImageVolumesOptions) {
    this.#options = options;
    this.#dataset = options.dataset;
  }

  nameOf(digest: string): string {
    return `${this.#dataset.name}/image-${digest.replace(/^sha256:/, '').slice(0, 32)}`;
  }

  /** Runs `act` while this image's volume is not dropped. */
  async holding(digest: string, act: () => Promise<void>): Promise<void> {
    const name = this.nameOf(digest);
    this.#held.set(name, (this.#held.get(name) ?? 0) + 1);
    try {
      await this.#dropping.get(name);
      await act();
    } finally {
      const others = (this.#held.get(name) ?? 1) - 1;
      if (others === 0) this.#held.delete(name);
      else this.#held.set(name, others);
    }
  }

  /** Resolves when the image's volume is complete. `before`: a list of volumes, which may be out of date. */
  async ensure(
    what: string,
    image: CachedImage,
    { before, signal }: { readonly before: ZfsVolumes; readonly signal: AbortSignal },
  ): Promise<void> {
    const name = this.nameOf(image.digest);
    if (this.#isReady(image, before)) return;
    let under = this.#making.get(name);
    while (under?.unwanted.signal.aborted === true) {
      await under.made.catch(() => {}); // it was aborted, and removes what it had made
      under = this.#making.get(name);
    }
    if (under === undefined) {
      const unwanted = new AbortController();
      const made = this.#make(what, image, unwanted.signal).finally(() => this.#making.delete(name));
      under = { made, unwanted, waiters: 0 };
      this.#making.set(name, under);
    }
    await awaitMaking(under, what, signal);
  }

  #isReady(image: CachedImage, volumes: ZfsVolumes): boolean {
    return volumes.get(readyOf(this.nameOf(image.digest)))?.image === image.digest;
  }

  async #make(what: string, image: CachedImage, signal: AbortSignal): Promise<void> {
    const dataset = this.#dataset;
    const name = this.nameOf(image.digest);
    const before = await dataset.list(what); // the caller's list may be older than another caller's making
    if (this.#isReady(image, before)) return;
    const half = before.get(name);
    if (half !== undefined) {
      if (half.image !== image.digest) throw foreign(what, name);
      await dataset.destroy(what, name); // the agent that filled it died before it was complete
    }
    await this.#dropUnused(before);
    const size = String(wholeUnits(image.virtualSizeBytes));
    // -s: space is allocated as the volume is filled (zfs(8), "create").
    await dataset.zfs(what, ['create', '-s', '-o', `${marks.image}=${image.digest}`, '-V', size, name], signal);
    try {
      await this.#fill({ what, image, name, signal });
      await dataset.zfs(what, ['snapshot', readyOf(name)], signal);
    } catch (error) {
      await dataset.destroy(what, name).catch(() => {}); // the next attempt destroys it; the first error is what counts
      throw error;
    }
  }

  async #fill({ what, image, name, signal }: Filling): Promise<void> {
    const { run, root, qemuImg } = this.#options;
    if (image.format === 'raw') return this.#copy({ what, from: image.path, name, signal });
    const unpacked = join(await root(), `${name.slice(name.lastIndexOf('/') + 1)}.raw`);
    try {
      await command(run, {
        what,
        program: qemuImg,
        arguments: ['convert', '-f', image.format, '-O', 'raw', image.path, unpacked],
        timeoutMs: copyTimeoutMs,
        signal,
      });
      await this.#copy({ what, from: unpacked, name, signal });
    } finally {
      await rm(unpacked, { force: true });
    }
  }

  async #copy({ what, from, name, signal }: Omit<Filling, 'image'> & { readonly from: string }): Promise<void> {
    await command(this.#options.run, {
      what,
      program: 'dd',
      // sync: a raw device takes whole blocks only, so the last one is padded with zeros (dd(8)).
      arguments: [`if=${from}`, `of=/dev/zvol/rdsk/${name}`, `bs=${unitBytes}`, 'conv=sync'],
      timeoutMs: copyTimeoutMs,
      signal,
    });
  }

  /** Drops volumes without clones that no caller is about to clone. Otherwise old images would fill the host's disk. */
  async #dropUnused(volumes: ZfsVolumes): Promise<void> {
    for (const [name, { image }] of volumes) {
      if (image === undefined || name.includes('@') || this.#held.has(name) || this.#making.has(name)) continue;
      if (volumes.get(readyOf(name))?.cloned === true) continue;
      const dropped = this.#dataset
        .destroy(`cannot drop the unused image volume ${name}`, name)
        .catch((error: unknown) =>
          this.#options.log.warn('an unused image volume stays', { volume: name, error: describeError(error) }),
        )
        .finally(() => this.#dropping.delete(name));
      this.#dropping.set(name, dropped);
      await dropped;
    }
  }
}

interface Filling {
  readonly what: string;
  readonly image: CachedImage;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** An aborted caller leaves the making to the others. The last caller to leave aborts it, and waits until it has ended. */
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
