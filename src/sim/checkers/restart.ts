// Invariant 9: a restart of an agent or a server changes nothing but time. A guest is stopped or removed while it runs only when it was
// not wanted to run a while before; one incarnation is started again only after that; and what is told of its start is true.

import type { Instance } from '../../api/resources/instance.ts';
import type { Checker, Facts } from './checker.ts';

/** The longest way of an order to a guest: pauses, partitions and slow starts lie between. */
const orderMsMax = 120_000;

interface Life {
  readonly incarnation: number;
  running: boolean;
  /** Each time it was started. */
  readonly startedAtMs: number[];
  /** The same as guests tell it, on the clock of their host. */
  readonly told: Set<number>;
  endedMs: number | undefined;
  /** When its end was last in order. */
  unwantedMs: number | undefined;
}

export function restartChecker({ state, world, nowMs, excused }: Facts): Checker {
  /** Of each guest that there is or was, by host and instance. */
  const lives = new Map<string, Life>();
  const hostsOf = new Map<string, Set<string>>();
  const instanceKeys = new Map<string, string>();

  const noteWish = (instanceId: string): void => {
    for (const host of hostsOf.get(instanceId) ?? []) {
      const life = lives.get(`${host} ${instanceId}`);
      if (life && !isWanted(host, instanceId, life.incarnation)) life.unwantedMs = nowMs();
    }
  };

  const instanceOf = (instanceId: string): Instance | undefined => {
    const found = state.get('instance', instanceKeys.get(instanceId) ?? '');
    return found?.metadata.id === instanceId ? found : undefined;
  };

  /** By its own reading of when a guest is to run: that of the control plane is what is under test. */
  const isWanted = (host: string, instanceId: string, incarnation: number): boolean => {
    const allocation = state.get('allocation', `allocations/${instanceId}.${incarnation}`);
    const holdsCpu = Object.values(allocation?.amounts ?? {}).some((held) => (held['VCPU'] ?? 0) > 0);
    const instance = instanceOf(instanceId);
    if (!holdsCpu || instance === undefined || instance.metadata.deletionRequestedAtMs !== undefined) return false;
    const { status, spec } = instance;
    if (status.host !== host || status.incarnation !== incarnation || spec.powerState === 'stopped') return false;
    const reason = status.conditions.find(({ type }) => type === 'Running')?.reason;
    return status.phase !== 'Exited' && (status.phase !== 'Failed' || reason === 'HostLost');
  };

  /** Since its last start, or on the way to it. */
  const wasUnwanted = (host: string, instanceId: string, life: Life): boolean => {
    const startedMs = life.startedAtMs.at(-1) ?? 0;
    const lately = life.unwantedMs !== undefined && life.unwantedMs >= startedMs - orderMsMax;
    return lately || !isWanted(host, instanceId, life.incarnation);
  };

  return {
    invariant: 9,
    onCommit({ events }) {
      for (const { key, before, after } of events) {
        const record = after ?? before;
        if (after?.kind === 'instance') instanceKeys.set(after.metadata.id, key);
        if (record?.kind === 'instance') noteWish(record.metadata.id);
        if (record?.kind === 'allocation') noteWish(record.consumer.id);
        if (after?.kind !== 'instance') continue;
        const fault = startFault(after);
        if (fault !== undefined) return `${fault} (${key})`;
      }
      return undefined;
    },
    onGuest(host, instanceId) {
      if (excused.host(host)) return undefined;
      const name = `${host} ${instanceId}`;
      const guest = world.guest(host, instanceId);
      const life = lives.get(name);
      const told = `${instanceId} incarnation ${guest?.incarnation ?? life?.incarnation} on ${host}`;
      if (guest === undefined) {
        if (life?.endedMs === nowMs() && !wasUnwanted(host, instanceId, life))
          return `${told} was removed while it was wanted to run`;
        if (life) life.running = false;
        return undefined;
      }
      if (life === undefined || life.incarnation !== guest.incarnation) {
        lives.set(name, newLife(guest.incarnation));
        hostsOf.set(instanceId, (hostsOf.get(instanceId) ?? new Set()).add(host));
        noteWish(instanceId);
      }
      const present = lives.get(name) ?? newLife(guest.incarnation);
      if (guest.running && !present.running) {
        if (present.startedAtMs.length > 0 && !wasUnwanted(host, instanceId, present))
          return `${told} was started again, and nobody wanted that`;
        present.startedAtMs.push(nowMs());
        if (guest.startedAtMs !== undefined) present.told.add(guest.startedAtMs);
      }
      if (!guest.running && present.running) {
        present.endedMs = nowMs();
        if (guest.stopRequested && !wasUnwanted(host, instanceId, present))
          return `${told} was stopped while it was wanted to run`;
      }
      present.running = guest.running;
      return undefined;
    },
  };

  /** A start that is told of an incarnation must have been. */
  function startFault({ metadata, status }: Instance): string | undefined {
    const { guest, host = '', incarnation } = status;
    if (guest?.startedAtMs === undefined || excused.host(host)) return undefined;
    const life = lives.get(`${host} ${metadata.id}`);
    if (life?.incarnation !== incarnation || life.told.has(guest.startedAtMs)) return undefined;
    return `instance ${metadata.name} is told to have started at ${guest.startedAtMs}, when it did not`;
  }
}

function newLife(incarnation: number): Life {
  return { incarnation, running: false, startedAtMs: [], told: new Set(), endedMs: undefined, unwantedMs: undefined };
}
