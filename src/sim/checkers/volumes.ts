// Volumes: a volume is open in at most one guest, and only on its own host. A volume that was made is never lost or made smaller. At rest
// every host has the volumes that are wanted there, as they are wanted, and no others.

import type { FakeWorld } from '../../agent/drivers/fake/world.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { Volume } from '../../api/resources/volume.ts';
import type { Commit } from '../history.ts';
import type { Checker, Facts } from './checker.ts';

export const volumesChecker = (facts: Facts): Checker =>
  facts.volumes === undefined ? { invariant: 2 } : new VolumesChecker(facts, facts.volumes);

const gib = 2 ** 30;

class VolumesChecker implements Checker {
  readonly invariant = 2;
  readonly overRestore = 'after';
  readonly #facts: Facts;
  readonly #world: Pick<FakeWorld, 'volumeDisk' | 'volumeFaults'>;
  #faultsSeen = 0;
  #restored = false;

  constructor(facts: Facts, world: Pick<FakeWorld, 'volumeDisk' | 'volumeFaults'>) {
    this.#facts = facts;
    this.#world = world;
  }

  onRestored(): void {
    this.#restored = true;
  }

  onGuest(): string | undefined {
    const fault = this.#world.volumeFaults[this.#faultsSeen];
    if (fault === undefined) return undefined;
    this.#faultsSeen += 1;
    if (this.#facts.excused.host(fault.host)) return undefined;
    const { volumeId, instanceId, host, others, behind } = fault;
    if (behind) return `volume ${volumeId} on ${host} has lost what was written to it, as ${instanceId} finds`;
    return others.length === 0
      ? `a guest of ${instanceId} opened volume ${volumeId} on ${host}, where it is not`
      : `a guest of ${instanceId} opened volume ${volumeId} on ${host}, which ${others.join(', ')} had open`;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const { after } of events) {
      const fault = after?.kind === 'volume' ? this.#missing(after) : undefined;
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  *unrest(): Iterable<string> {
    const { state } = this.#facts;
    const known = new Set<string>();
    for (const volume of state.list('volume')) {
      known.add(volume.metadata.id);
      yield* this.#unrestOf(volume);
    }
    for (const instance of state.list('instance')) yield* this.#unrestOfGuest(instance);
    // Volumes made after a backup have no record after its restore, and stay.
    for (const { metadata } of this.#restored ? [] : state.list('host'))
      if (!this.#outOfSight(metadata.name))
        for (const id of this.#world.volumeDisk(metadata.name).keys())
          if (!known.has(id)) yield `volume ${id} is left on ${metadata.name}, and there is no record of it`;
  }

  /** What a record says to be on a host and is not. */
  #missing({ metadata, spec, status }: Volume): string | undefined {
    const { state, excused } = this.#facts;
    if (!status.made || status.host === undefined || status.phase === 'Failed') return undefined;
    // It moved here and its host has not yet put what it received in its place.
    if ((status.life ?? 1) > 1 && status.report === undefined) return undefined;
    // A volume may be gone before its record is deleted. A backup may have volumes that were deleted since.
    if (metadata.deletionRequestedAtMs !== undefined || this.#restored || excused.host(status.host)) return undefined;
    if (!state.get('host', `hosts/${status.host}`)) return undefined;
    const found = this.#world.volumeDisk(status.host).get(metadata.id);
    const name = nameOf(metadata);
    if (found === undefined) return `${name} was made on ${status.host} and is not there`;
    return found.sizeBytes > spec.sizeGiB * gib
      ? `${name} has ${found.sizeBytes / gib} GiB on ${status.host}, and ${spec.sizeGiB} are wanted`
      : undefined;
  }

  *#unrestOf(volume: Volume): Iterable<string> {
    const { metadata, status } = volume;
    const { host, phase, attachedTo } = status;
    const name = nameOf(metadata);
    // When the host has no room for what it made since the backup, the volume is only kept.
    const kept = this.#restored && status.conditions.some(({ reason }) => reason === 'Restored');
    if (host !== undefined && phase !== 'Failed' && !kept && !this.#outOfSight(host)) {
      const fault = this.#unlike(volume);
      if (fault !== undefined) yield `${name} on ${host} ${fault}`;
    }
    if (attachedTo === undefined) return;
    const instance = this.#facts.state.get('instance', `instances/${metadata.project}/${attachedTo.instance}`);
    const attached = instance?.spec.volumes?.some((each) => each.name === metadata.name);
    if (instance?.metadata.id !== attachedTo.id || !attached)
      yield `${name} is attached to ${attachedTo.instance}, which does not have it`;
  }

  *#unrestOfGuest({ metadata, spec, status }: Instance): Iterable<string> {
    const { state, world: guests } = this.#facts;
    const { host, phase } = status;
    if ((phase !== 'Running' && phase !== 'Suspended') || host === undefined || this.#outOfSight(host)) return;
    const wanted = (spec.volumes ?? []).flatMap(({ name }) => {
      const volume = state.get('volume', `volumes/${metadata.project}/${name}`);
      return volume && (this.#isLost(volume) || this.#isHeldByUnknown(volume)) ? [] : [volume?.metadata.id];
    });
    const had = (guests.guest(host, metadata.id)?.volumes ?? []).map(({ volumeId }) => volumeId);
    if (had.join() !== wanted.join())
      yield `the guest of ${metadata.name} on ${host} has the volumes ${had.join() || 'none'} instead of ${wanted.join() || 'none'}`;
  }

  /** How the volume on the host differs from its record. */
  #unlike({ metadata, spec, status }: Volume): string | undefined {
    const found = this.#world.volumeDisk(status.host ?? '').get(metadata.id);
    if (found === undefined) return 'is not there';
    if (found.sizeBytes !== spec.sizeGiB * gib) return `has ${found.sizeBytes / gib} of ${spec.sizeGiB} GiB`;
    const names = found.snapshots.map(({ name }) => name).sort();
    if (names.join() !== [...spec.snapshots].sort().join())
      return `has the snapshots ${names.join() || 'none'} instead of ${spec.snapshots.join() || 'none'}`;
    if (status.phase !== 'Ready' || status.observedGeneration !== metadata.generation)
      return `is ${status.phase} at generation ${status.observedGeneration} of ${metadata.generation}`;
    return undefined;
  }

  /** It was deleted after the backup that has it: its instance waits for it, with a reason. */
  #isLost({ metadata, status }: Volume): boolean {
    return this.#restored && status.phase === 'Failed' && !this.#world.volumeDisk(status.host ?? '').has(metadata.id);
  }

  /** A guest that was made after the backup is not touched: the instance that had its volumes before waits for them, with a reason. */
  #isHeldByUnknown({ metadata, status }: Volume): boolean {
    if (!this.#restored) return false;
    const { state, world: guests } = this.#facts;
    const holder = guests
      .guests(status.host)
      .find(({ volumes = [] }) => volumes.some(({ volumeId }) => volumeId === metadata.id));
    return holder !== undefined && [...state.list('instance')].every((each) => each.metadata.id !== holder.instanceId);
  }

  #outOfSight(host: string): boolean {
    const { state, dead, excused } = this.#facts;
    return dead.has(host) || excused.host(host) || !state.get('host', `hosts/${host}`);
  }
}

function nameOf({ name, id }: Volume['metadata']): string {
  return `volume ${name} (${id})`;
}
