// The volumes on the disks of a fake world's hosts, and which guests have them open. It records each opening that a real
// host would have to prevent; it prevents none.

import type { VolumeDisk } from '../../volumes/files/memory-volume-files.ts';
import type { GuestVolume } from '../driver.ts';
import type { FakeGuest } from './fake-guest.ts';
import type { GuestRegistry } from './guest-registry.ts';

/** A guest opened a volume that another had open, that is not on its host, or that has lost what was written to it. */
export interface VolumeFault {
  readonly volumeId: string;
  readonly host: string;
  readonly instanceId: string;
  /** Empty: the volume does not exist. */
  readonly others: readonly string[];
  /** The last write to it was lost. */
  readonly behind?: true;
}

export class VolumeUse {
  readonly faults: VolumeFault[] = [];
  readonly #guests: GuestRegistry;
  readonly #openDisk: ((host: string) => VolumeDisk) | undefined;
  readonly #disks = new Map<string, VolumeDisk>();
  /** Number of writes to each volume, on any host. */
  readonly #writes = new Map<string, number>();

  constructor(guests: GuestRegistry, openDisk: ((host: string) => VolumeDisk) | undefined) {
    this.#guests = guests;
    this.#openDisk = openDisk;
  }

  disk(host: string): VolumeDisk {
    const disk = this.#disks.get(host) ?? this.#openDisk?.(host) ?? new Map();
    this.#disks.set(host, disk);
    return disk;
  }

  /** Ids of the guests of a host that run and have this volume open. */
  users(host: string, volumeId: string): string[] {
    return this.#guests
      .list(host)
      .filter((guest) => guest.running && guest.volumes?.some((each) => each.volumeId === volumeId))
      .map(({ instanceId }) => instanceId);
  }

  noteOpened({ host, instanceId }: FakeGuest, volumes: readonly GuestVolume[]): void {
    for (const { volumeId } of volumes) {
      const others = this.users(host, volumeId).filter((user) => user !== instanceId);
      if (others.length > 0 || !this.disk(host).has(volumeId)) this.faults.push({ volumeId, host, instanceId, others });
    }
  }

  /** The guest writes to its volumes. The content of a volume is the number of writes. */
  write({ host, instanceId, volumes = [] }: FakeGuest): void {
    for (const { volumeId, readOnly } of volumes) {
      const volume = this.disk(host).get(volumeId);
      if (volume === undefined) continue;
      const writes = Number(volume.content);
      if (writes < (this.#writes.get(volumeId) ?? 0))
        this.faults.push({ volumeId, host, instanceId, others: [], behind: true });
      if (readOnly) continue;
      volume.content = String(writes + 1);
      this.#writes.set(volumeId, writes + 1);
    }
  }

  /** The guest has these volumes and no others from now on. */
  set(guest: FakeGuest, volumes: readonly GuestVolume[]): void {
    const before = guest.volumes ?? [];
    if (guest.running)
      this.noteOpened(
        guest,
        volumes.filter(({ volumeId }) => !before.some((each) => each.volumeId === volumeId)),
      );
    if (volumes.length === 0) delete guest.volumes;
    else guest.volumes = volumes;
    this.#guests.changed(guest);
  }
}
