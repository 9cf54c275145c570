// Request: what an instance needs, with sizes, image defaults and profiles resolved. All that plugins see of an instance.

import type { Image } from '../../api/resources/image.ts';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import type { Amounts, Labels } from '../../api/resources/metadata.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';

export const profiles = ['optimize-utilization', 'distribute-load'] as const;
export type ProfileName = (typeof profiles)[number];

export interface Request {
  readonly amounts: Amounts;
  readonly image: Image | undefined;
  /** The driver asked for by the instance or needed by its image. */
  readonly driver: string | undefined;
  readonly pool: string | undefined;
  readonly hostLabels: Labels;
  readonly profile: ProfileName;
}

export interface Room {
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly diskGiB: number;
}

/** What an instance gets: its own numbers, else its size's, else its image's, else 1 CPU, 512 MiB and the image's disk. */
export function roomOf(snapshot: Snapshot, spec: InstanceSpec): Room {
  const size = spec.size === undefined ? undefined : snapshot.get('size', keys.size(spec.size))?.value.spec;
  const defaults = snapshot.imageByName(spec.image)?.value.spec.defaults;
  return {
    cpus: spec.cpus ?? size?.cpus ?? defaults?.cpus ?? 1,
    memoryMiB: spec.memoryMiB ?? size?.memoryMiB ?? defaults?.memoryMiB ?? 512,
    diskGiB: spec.diskGiB ?? size?.diskGiB ?? defaults?.diskGiB ?? 0,
  };
}

export function requestOf(snapshot: Snapshot, instance: Instance): Request {
  const { spec } = instance;
  const room = roomOf(snapshot, spec);
  const image = snapshot.imageByName(spec.image)?.value;
  const pool = spec.placement.pool;
  return {
    amounts: {
      VCPU: room.cpus,
      MEMORY_MB: room.memoryMiB,
      ...(room.diskGiB > 0 ? { DISK_GB: room.diskGiB } : {}),
      ...spec.resources,
    },
    image,
    driver: spec.placement.driver ?? image?.spec.backend,
    pool,
    hostLabels: spec.placement.hostLabels ?? {},
    profile: spec.placement.profile ?? poolProfile(snapshot, pool) ?? 'optimize-utilization',
  };
}

/** Instances that name no pool go by the pool called `default`, if there is one: its profile is the fleet's, changeable any time. */
function poolProfile(snapshot: Snapshot, pool = 'default'): ProfileName | undefined {
  return snapshot.get('pool', keys.pool(pool))?.value.spec.profile;
}
