// Invariant 5: an allocation exists exactly as long as its consumer may use the room, and is released once. While anything of a guest
// is on a host, that incarnation holds room there; while it runs, all of it. At rest no room is held without a consumer.

import type { Instance } from '../../api/resources/instance.ts';
import type { Task } from '../../api/resources/task.ts';
import type { Volume } from '../../api/resources/volume.ts';
import type { Allocation } from '../../core/state/records.ts';
import type { Commit, RecordEvent } from '../history.ts';
import type { Checker, Facts } from './checker.ts';

export const allocationChecker = (facts: Facts): Checker => new AllocationChecker(facts);

class AllocationChecker implements Checker {
  readonly invariant = 5;
  readonly #facts: Facts;
  /** Keys of all allocations there ever were, but for those of volumes. */
  readonly #made = new Set<string>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const event of events) {
      const fault = this.#faultOfEvent(event);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  /** What is wrong with the room of this guest, if there is one. */
  onGuest(host: string, instanceId: string): string | undefined {
    const { state, world, excused } = this.#facts;
    const guest = world.guest(host, instanceId);
    if (guest === undefined || excused.host(host)) return undefined;
    const name = `${instanceId} incarnation ${guest.incarnation} on ${host}`;
    const allocation = state.get('allocation', `allocations/${instanceId}.${guest.incarnation}`);
    if (allocation === undefined || allocation.host !== host)
      return `a guest of ${name} is there (${guest.state}) and holds no room`;
    if (guest.running && !holdsCpu(allocation)) return `a guest of ${name} runs and holds no CPU`;
    return undefined;
  }

  recount(): string | undefined {
    const { state, world } = this.#facts;
    for (const { host, instanceId } of world.guests()) {
      const fault = this.onGuest(host, instanceId);
      if (fault !== undefined) return `never saw that ${fault}`;
    }
    for (const allocation of state.list('allocation')) {
      const { consumer } = allocation;
      if (holdsOnce(allocation) && !this.#made.has(`allocations/${consumer.id}.${consumer.incarnation}`))
        return `never saw ${consumer.id} get room`;
    }
    return undefined;
  }

  *unrest(): Iterable<string> {
    const { state, dead } = this.#facts;
    for (const allocation of state.list('allocation')) {
      if (dead.has(allocation.host)) continue; // no agent can report that nothing of it is left there
      const complaint = this.#unrestOf(allocation);
      if (complaint !== undefined) yield complaint;
    }
    for (const { metadata, status } of state.list('instance')) {
      // An instance that is being deleted has given up its room, and waits for another host that has something of it.
      if (status.host === undefined || metadata.deletionRequestedAtMs !== undefined) continue;
      const allocation = state.get('allocation', `allocations/${metadata.id}.${status.incarnation}`);
      if (allocation?.host !== status.host) yield `${metadata.name} is bound to ${status.host} and holds no room there`;
    }
  }

  #faultOfEvent({ key, before, after }: RecordEvent): string | undefined {
    if (after?.kind === 'allocation' && before === null && holdsOnce(after)) {
      if (this.#made.has(key)) return `${key} was released and is held again`;
      this.#made.add(key);
    }
    const taskFault = after?.kind === 'task' ? this.#faultOfTask(after) : undefined;
    const volumeFault = after?.kind === 'volume' ? this.#faultOfVolume(after) : undefined;
    return taskFault ?? volumeFault ?? (before?.kind === 'allocation' ? this.#faultOfConsumer(before) : undefined);
  }

  /** After an allocation has changed or gone. */
  #faultOfConsumer({ host, consumer }: Allocation): string | undefined {
    if (consumer.kind === 'volume') {
      const volume = this.#volumeOf(consumer);
      return volume && this.#faultOfVolume(volume);
    }
    if (consumer.kind === 'task') {
      const task = this.#taskOf(consumer);
      return task && this.#faultOfTask(task);
    }
    return this.onGuest(host, consumer.id);
  }

  /** A task holds room exactly as long as it says so. When its host is removed, the room is given back afterwards. */
  #faultOfTask({ metadata, status }: Task): string | undefined {
    const { state } = this.#facts;
    const allocation = state.get('allocation', `allocations/${metadata.id}.1`);
    if (status.phase === 'Placed' && allocation?.host !== status.host && state.get('host', `hosts/${status.host}`))
      return `task ${metadata.name} (${metadata.id}) is placed on ${status.host} and holds no room there`;
    if (status.phase !== 'Placed' && status.phase !== 'Failed' && allocation)
      return `task ${metadata.name} (${metadata.id}) is ${status.phase} and holds room on ${allocation.host}`;
    return undefined;
  }

  /** A volume on a host holds its room there, snapshots included, until the host reports that nothing of it is left. */
  #faultOfVolume({ metadata, spec, status }: Volume): string | undefined {
    const { state } = this.#facts;
    if (status.host === undefined || !state.get('host', `hosts/${status.host}`)) return undefined;
    const allocation = state.get('allocation', `allocations/${metadata.id}.${status.life ?? 1}`);
    const name = `volume ${metadata.name} (${metadata.id})`;
    if (allocation === undefined)
      return metadata.deletionRequestedAtMs === undefined
        ? `${name} is on ${status.host} and holds no room there`
        : undefined;
    if (allocation.host !== status.host) return `${name} is on ${status.host} and holds room on ${allocation.host}`;
    const held = Object.values(allocation.amounts).reduce((sum, each) => sum + (each['DISK_GB'] ?? 0), 0);
    const wanted = spec.sizeGiB * (1 + spec.snapshots.length);
    return held < wanted ? `${name} may grow to ${wanted} GiB and holds ${held}` : undefined;
  }

  /** Why room cannot be held like this at rest. */
  #unrestOf({ consumer, host, amounts }: Allocation): string | undefined {
    const name = `${consumer.id}.${consumer.incarnation} on ${host}`;
    if (consumer.kind === 'task') {
      const task = this.#taskOf(consumer);
      if (task === undefined) return `room is held for task ${name}, which is no more`;
      return task.status.phase === 'Placed'
        ? undefined
        : `room is held for task ${name}, which is ${task.status.phase}`;
    }
    if (consumer.kind === 'volume') {
      const volume = this.#volumeOf(consumer);
      if (volume === undefined) return `room is held for volume ${name}, which is no more`;
      return volume.metadata.deletionRequestedAtMs === undefined ? undefined : `volume ${name} is still being removed`;
    }
    if (consumer.kind === 'outside')
      return this.#facts.state.get('outsideConsumer', `outside-consumers/${consumer.id}`)
        ? undefined
        : `room is held for outside consumer ${name}, which is no more`;
    const instance = this.#facts.state.get('instance', `instances/${consumer.project}/${consumer.name}`);
    if (instance?.metadata.id !== consumer.id) return `room is held for ${name}, which is no more`;
    const { status } = instance;
    if (status.incarnation !== consumer.incarnation || status.host !== host)
      return `room is held for ${name}, which is incarnation ${status.incarnation} on ${status.host ?? 'no host'} now`;
    return isOver(instance) && holdsMoreThanDisk(amounts)
      ? `${name} is ${status.phase} and holds more than its disk`
      : undefined;
  }

  #taskOf({ project, name, id }: Allocation['consumer']): Task | undefined {
    const task = this.#facts.state.get('task', `tasks/${project}/${name}`);
    return task?.metadata.id === id ? task : undefined;
  }

  #volumeOf({ project, name, id }: Allocation['consumer']): Volume | undefined {
    const volume = this.#facts.state.get('volume', `volumes/${project}/${name}`);
    return volume?.metadata.id === id ? volume : undefined;
  }
}

/**
 * A volume that was never made on its host gets new room elsewhere when that host is removed; an outside consumer may come back.
 */
function holdsOnce({ consumer }: Allocation): boolean {
  return consumer.kind !== 'volume' && consumer.kind !== 'outside';
}

function isOver({ status }: Instance): boolean {
  return status.phase === 'Exited' || status.phase === 'Failed';
}

function holdsMoreThanDisk(amounts: Allocation['amounts']): boolean {
  return Object.values(amounts).some((held) => Object.keys(held).some((name) => name !== 'DISK_GB'));
}

function holdsCpu({ amounts }: Allocation): boolean {
  return Object.values(amounts).some((held) => (held['VCPU'] ?? 0) > 0);
}
