// Invariant 5: an allocation exists exactly as long as its consumer may use the room, and is released once. While anything of a guest
// is on a host, that incarnation holds room there; while it runs, all of it. At rest nothing is held without a consumer.

import type { Volume } from '../../api/resources/volume.ts';
import type { Task } from '../../api/resources/task.ts';
import type { Allocation } from '../../core/state/records.ts';
import type { Checker, Facts } from './checker.ts';

export function allocationChecker({ state, world, excused, dead }: Facts): Checker {
  const made = new Set<string>();

  /** What is wrong with the room of this guest, if there is one. */
  const check = (host: string, instanceId: string): string | undefined => {
    const guest = world.guest(host, instanceId);
    if (guest === undefined || excused.host(host)) return undefined;
    const name = `${instanceId} incarnation ${guest.incarnation} on ${host}`;
    const allocation = state.get('allocation', `allocations/${instanceId}.${guest.incarnation}`);
    if (allocation === undefined || allocation.host !== host)
      return `a guest of ${name} is there (${guest.state}) and holds no room`;
    if (guest.running && !holdsCpu(allocation)) return `a guest of ${name} runs and holds no CPU`;
    return undefined;
  };

  /** A task holds room exactly as long as it says so; but for a host that is removed, whose room is given back after it. */
  const faultOfTask = ({ metadata, status }: Task): string | undefined => {
    const allocation = state.get('allocation', `allocations/${metadata.id}.1`);
    if (status.phase === 'Placed' && allocation?.host !== status.host && state.get('host', `hosts/${status.host}`))
      return `task ${metadata.name} (${metadata.id}) is placed on ${status.host} and holds no room there`;
    if (status.phase !== 'Placed' && status.phase !== 'Failed' && allocation)
      return `task ${metadata.name} (${metadata.id}) is ${status.phase} and holds room on ${allocation.host}`;
    return undefined;
  };

  /** A volume that is on a host holds its room there, snapshots included, until the host says that nothing of it is left. */
  const faultOfVolume = ({ metadata, spec, status }: Volume): string | undefined => {
    if (status.host === undefined || !state.get('host', `hosts/${status.host}`)) return undefined;
    const allocation = state.get('allocation', `allocations/${metadata.id}.1`);
    const name = `volume ${metadata.name} (${metadata.id})`;
    if (allocation === undefined)
      return metadata.deletionRequestedAtMs === undefined
        ? `${name} is on ${status.host} and holds no room there`
        : undefined;
    if (allocation.host !== status.host) return `${name} is on ${status.host} and holds room on ${allocation.host}`;
    const held = Object.values(allocation.amounts).reduce((sum, each) => sum + (each['DISK_GB'] ?? 0), 0);
    const wanted = spec.sizeGiB * (1 + spec.snapshots.length);
    return held < wanted ? `${name} may grow to ${wanted} GiB and holds ${held}` : undefined;
  };

  return {
    invariant: 5,
    onCommit({ events }) {
      for (const { key, before, after } of events) {
        // One that was never made there is held anew elsewhere when its host is removed.
        if (after?.kind === 'allocation' && before === null && after.consumer.kind !== 'volume') {
          if (made.has(key)) return `${key} was released and is held again`;
          made.add(key);
        }
        const taskFault = after?.kind === 'task' ? faultOfTask(after) : undefined;
        if (taskFault !== undefined) return taskFault;
        const volumeFault = after?.kind === 'volume' ? faultOfVolume(after) : undefined;
        if (volumeFault !== undefined) return volumeFault;
        const allocation = before?.kind === 'allocation' ? before : undefined;
        if (allocation === undefined) continue;
        if (allocation.consumer.kind === 'volume') {
          const { project, name, id } = allocation.consumer;
          const volume = state.get('volume', `volumes/${project}/${name}`);
          const fault = volume?.metadata.id === id ? faultOfVolume(volume) : undefined;
          if (fault !== undefined) return fault;
          continue;
        }
        if (allocation.consumer.kind === 'task') {
          const { project, name, id } = allocation.consumer;
          const task = state.get('task', `tasks/${project}/${name}`);
          const taskFaultNow = task?.metadata.id === id ? faultOfTask(task) : undefined;
          if (taskFaultNow !== undefined) return taskFaultNow;
          continue;
        }
        const fault = check(allocation.host, allocation.consumer.id);
        if (fault !== undefined) return fault;
      }
      return undefined;
    },
    onGuest: check,
    recount() {
      for (const { host, instanceId } of world.guests()) {
        const fault = check(host, instanceId);
        if (fault !== undefined) return `never saw that ${fault}`;
      }
      for (const { consumer } of state.list('allocation'))
        if (consumer.kind !== 'volume' && !made.has(`allocations/${consumer.id}.${consumer.incarnation}`))
          return `never saw ${consumer.id} get room`;
      return undefined;
    },
    *unrest() {
      for (const { consumer, host, amounts } of state.list('allocation')) {
        if (dead.has(host)) continue; // nobody can say that nothing of it is left there
        const name = `${consumer.id}.${consumer.incarnation} on ${host}`;
        if (consumer.kind === 'task') {
          const task = state.get('task', `tasks/${consumer.project}/${consumer.name}`);
          if (task?.metadata.id !== consumer.id) yield `room is held for task ${name}, which is no more`;
          else if (task.status.phase !== 'Placed') yield `room is held for task ${name}, which is ${task.status.phase}`;
          continue;
        }
        if (consumer.kind === 'volume') {
          const volume = state.get('volume', `volumes/${consumer.project}/${consumer.name}`);
          if (volume?.metadata.id !== consumer.id) yield `room is held for volume ${name}, which is no more`;
          else if (volume.metadata.deletionRequestedAtMs !== undefined) yield `volume ${name} is still being removed`;
          continue;
        }
        const instance = state.get('instance', `instances/${consumer.project}/${consumer.name}`);
        if (instance?.metadata.id !== consumer.id) {
          yield `room is held for ${name}, which is no more`;
          continue;
        }
        const { status } = instance;
        if (status.incarnation !== consumer.incarnation || status.host !== host) {
          yield `room is held for ${name}, which is incarnation ${status.incarnation} on ${status.host ?? 'no host'} now`;
          continue;
        }
        const over = status.phase === 'Exited' || status.phase === 'Failed';
        if (over && Object.values(amounts).some((held) => Object.keys(held).some((name) => name !== 'DISK_GB')))
          yield `${name} is ${status.phase} and holds more than its disk`;
      }
      for (const { metadata, status } of state.list('instance')) {
        // One that goes has given up its room, and waits for another host that has something of it.
        if (status.host === undefined || metadata.deletionRequestedAtMs !== undefined) continue;
        const allocation = state.get('allocation', `allocations/${metadata.id}.${status.incarnation}`);
        if (allocation?.host !== status.host)
          yield `${metadata.name} is bound to ${status.host} and holds no room there`;
      }
    },
  };
}

function holdsCpu({ amounts }: Allocation): boolean {
  return Object.values(amounts).some((held) => (held['VCPU'] ?? 0) > 0);
}
