// The disks of guests as ZFS volumes: each a clone of its image's snapshot (image-volumes.ts). It never touches a volume
// without our mark.

import type { Logger } from '../../../base/log.ts';
import type { CachedImage } from '../../images/image-cache.ts';
import { ImageVolumes, type ImageVolumesOptions } from './image-volumes.ts';
import { foreign, marks, readyOf, wholeUnits, type ZfsDataset } from './zfs-dataset.ts';

export class GuestDisks {
  readonly #dataset: ZfsDataset;
  readonly #log: Logger;
  readonly #images: ImageVolumes;

  constructor(options: ImageVolumesOptions) {
    this.#dataset = options.dataset;
    this.#log = options.log;
    this.#images = new ImageVolumes(options);
  }

  /** The name of a guest's volume, whether it exists or not: `rpool/berth/disk-inst_...`. */
  nameOf(instanceId: string): string {
    return `${this.#dataset.name}/disk-${instanceId}`;
  }

  /** Makes the disk, or finds it as requested. Throws `DriverError`. */
  ensure(call: {
    readonly instanceId: string;
    readonly uuid: string;
    readonly image: CachedImage;
    /** Of the disk; never smaller than the image. */
    readonly sizeBytes: number;
    readonly signal: AbortSignal;
  }): Promise<void> {
    const { instanceId, uuid, image, sizeBytes, signal } = call;
    const dataset = this.#dataset;
    const name = this.nameOf(instanceId);
    const what = `cannot make the disk of ${instanceId}`;
    return this.#images.holding(image.digest, async () => {
      const before = await dataset.list(what);
      const disk = before.get(name);
      if (disk === undefined) {
        await this.#images.ensure(what, image, { before, signal });
        const snapshot = readyOf(this.#images.nameOf(image.digest));
        await dataset.zfs(what, ['clone', '-o', `${marks.guest}=${uuid}`, snapshot, name]);
      } else if (disk.guest !== uuid) throw foreign(what, name);
      const size = wholeUnits(Math.max(sizeBytes, image.virtualSizeBytes));
      if (size > (disk?.sizeBytes ?? wholeUnits(image.virtualSizeBytes)))
        await dataset.zfs(what, ['set', `volsize=${size}`, name]);
    });
  }

  /** `uuid` absent: the disk of any incarnation. Does nothing when there is none, or when it is not ours. */
  async remove({ instanceId, uuid }: { readonly instanceId: string; readonly uuid?: string }): Promise<void> {
    const name = this.nameOf(instanceId);
    const what = `cannot remove the disk of ${instanceId}`;
    const disk = (await this.#dataset.list(what)).get(name);
    if (disk === undefined) return;
    if (disk.guest === undefined || (uuid !== undefined && disk.guest !== uuid)) {
      this.#log.error('a volume with the name of a guest is not ours, and is left alone', { volume: name });
      return;
    }
    await this.#dataset.destroy(what, name);
  }
}
