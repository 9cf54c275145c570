// Volumes: one is open in one guest at most, and only where it is; what was made is never lost or made smaller; and at rest every host has
// those volumes that are wanted there, as they are wanted, and no others.

import type { Volume } from '../../api/resources/volume.ts';
import type { Checker, Facts } from './checker.ts';

const gib = 2 ** 30;

export function volumesChecker({ state, volumes: world, excused, dead, world: guests }: Facts): Checker {
  let faultsSeen = 0;
  let restored = false;
  if (world === undefined) return { invariant: 2 };

  /** What a record says to be there that is not. */
  const missing = ({ metadata, spec, status }: Volume): string | undefined => {
    if (!status.made || status.host === undefined || status.phase === 'Failed') return undefined;
    // One that goes may be gone before its record is. A backup may speak of what has been deleted since.
    if (metadata.deletionRequestedAtMs !== undefined || restored || excused.host(status.host)) return undefined;
    if (!state.get('host', `hosts/${status.host}`)) return undefined;
    const found = world.volumeDisk(status.host).get(metadata.id);
    const name = `volume ${metadata.name} (${metadata.id})`;
    if (found === undefined) return `${name} was made on ${status.host} and is not there`;
    return found.sizeBytes > spec.sizeGiB * gib
      ? `${name} has ${found.sizeBytes / gib} GiB on ${status.host}, and ${spec.sizeGiB} are wanted`
      : undefined;
  };

  const unlike = ({ metadata, spec, status }: Volume): string | undefined => {
    const found = world.volumeDisk(status.host ?? '').get(metadata.id);
    if (found === undefined) return 'is not there';
    if (found.sizeBytes !== spec.sizeGiB * gib) return `has ${found.sizeBytes / gib} of ${spec.sizeGiB} GiB`;
    const names = found.snapshots.map(({ name }) => name).sort();
    if (names.join() !== [...spec.snapshots].sort().join())
      return `has the snapshots ${names.join() || 'none'} instead of ${spec.snapshots.join() || 'none'}`;
    if (status.phase !== 'Ready' || status.observedGeneration !== metadata.generation)
      return `is ${status.phase} at generation ${status.observedGeneration} of ${metadata.generation}`;
    return undefined;
  };

  /** It was deleted after the backup that speaks of it: its instance waits for it, and says so. */
  const isLost = ({ metadata, status }: Volume): boolean =>
    restored && status.phase === 'Failed' && !world.volumeDisk(status.host ?? '').has(metadata.id);

  /** A guest that was made after the backup is not touched: whoever had its volumes before waits for them, and says so. */
  const isHeldByUnknown = ({ metadata, status }: Volume): boolean => {
    if (!restored) return false;
    const holder = guests
      .guests(status.host)
      .find(({ volumes = [] }) => volumes.some(({ volumeId }) => volumeId === metadata.id));
    return holder !== undefined && [...state.list('instance')].every((each) => each.metadata.id !== holder.instanceId);
  };

  const outOfSight = (host: string): boolean =>
    dead.has(host) || excused.host(host) || !state.get('host', `hosts/${host}`);

  return {
    invariant: 2,
    overRestore: 'after',
    onRestored() {
      restored = true;
    },
    onGuest() {
      const fault = world.volumeFaults[faultsSeen];
      if (fault === undefined) return undefined;
      faultsSeen += 1;
      if (excused.host(fault.host)) return undefined;
      const { volumeId, instanceId, host, others } = fault;
      return others.length === 0
        ? `a guest of ${instanceId} opened volume ${volumeId} on ${host}, where it is not`
        : `a guest of ${instanceId} opened volume ${volumeId} on ${host}, which ${others.join(', ')} had open`;
    },
    onCommit({ events }) {
      for (const { after } of events) {
        const fault = after?.kind === 'volume' ? missing(after) : undefined;
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
    *unrest() {
      const known = new Set<string>();
      for (const volume of state.list('volume')) {
        const { metadata, status } = volume;
        known.add(metadata.id);
        const { host, phase, attachedTo } = status;
        const name = `volume ${metadata.name} (${metadata.id})`;
        // Where there is no room for what its host made since the backup, it is only kept.
        const kept = restored && status.conditions.some(({ reason }) => reason === 'Restored');
        if (host !== undefined && phase !== 'Failed' && !kept && !outOfSight(host)) {
          const fault = unlike(volume);
          if (fault !== undefined) yield `${name} on ${host} ${fault}`;
        }
        if (attachedTo === undefined) continue;
        const instance = state.get('instance', `instances/${metadata.project}/${attachedTo.instance}`);
        if (
          instance?.metadata.id !== attachedTo.id ||
          !instance.spec.volumes?.some((each) => each.name === metadata.name)
        )
          yield `${name} is attached to ${attachedTo.instance}, which does not have it`;
      }
      for (const { metadata, spec, status } of state.list('instance')) {
        const { host, phase } = status;
        if ((phase !== 'Running' && phase !== 'Suspended') || host === undefined || outOfSight(host)) continue;
        const wanted = (spec.volumes ?? []).flatMap(({ name }) => {
          const volume = state.get('volume', `volumes/${metadata.project}/${name}`);
          return volume && (isLost(volume) || isHeldByUnknown(volume)) ? [] : [volume?.metadata.id];
        });
        const had = (guests.guest(host, metadata.id)?.volumes ?? []).map(({ volumeId }) => volumeId);
        if (had.join() !== wanted.join())
          yield `the guest of ${metadata.name} on ${host} has the volumes ${had.join() || 'none'} instead of ${wanted.join() || 'none'}`;
      }
      // What was made after a backup is nobody's after its restore, and stays.
      for (const { metadata } of restored ? [] : state.list('host'))
        if (!outOfSight(metadata.name))
          for (const id of world.volumeDisk(metadata.name).keys())
            if (!known.has(id)) yield `volume ${id} is left on ${metadata.name}, and there is no record of it`;
    },
  };
}
