// Invariant 9: a restart of an agent or a server changes nothing but time. A guest is stopped or removed while it runs only when it was
// not wanted to run a while before; one incarnation is started again only after that. It must know of commits before what they let happen
// to a guest; of the guest it may hear later.

import type { Instance } from '../../api/resources/instance.ts';
import type { AnyRecord } from '../../core/state/records.ts';
import type { Checker, Facts } from './checker.ts';

/** The longest way of an order to a guest: pauses, partitions and slow starts lie between. */
const orderMsMax = 120_000;

interface Life {
  readonly incarnation: number;
  running: boolean;
  /** Each time it was started. */
  readonly startedAtMs: number[];
  endedMs: number | undefined;
}

/** What commits say of one incarnation on one host, whether its guest is known or not. */
interface Wish {
  /** When its end was last in order. */
  unwantedMs: number;
  /** When that was over; undefined: it is in order. */
  wantedSinceMs?: number;
}

export function restartChecker({ state, world, nowMs, excused }: Facts): Checker {
  /** Of each guest that there is or was, by host and instance. */
  const lives = new Map<string, Life>();
  const hostsOf = new Map<string, Set<string>>();
  const instanceKeys = new Map<string, string>();
  /** By host, instance and incarnation; of those whose end was never in order nothing. */
  const wishes = new Map<string, Wish>();

  const noteWish = (host: string, instanceId: string, incarnation: number): void => {
    const name = `${host} ${instanceId} ${incarnation}`;
    const wish = wishes.get(name);
    if (!isWanted(host, instanceId, incarnation)) wishes.set(name, { unwantedMs: nowMs() });
    else if (wish) wish.wantedSinceMs ??= nowMs();
  };

  /** What was in order before a guest was there is not for it. */
  const noteBirth = (host: string, instanceId: string, incarnation: number): void => {
    const name = `${host} ${instanceId} ${incarnation}`;
    const wantedSinceMs = wishes.get(name)?.wantedSinceMs;
    if (wantedSinceMs !== undefined && wantedSinceMs <= nowMs()) wishes.delete(name);
    else noteWish(host, instanceId, incarnation);
  };

  const noteRecord = (record: AnyRecord | null): void => {
    const life = lifeOf(record);
    if (life === undefined) return;
    noteWish(life.host, life.instanceId, life.incarnation);
    for (const host of hostsOf.get(life.instanceId) ?? []) {
      const known = lives.get(`${host} ${life.instanceId}`);
      if (known) noteWish(host, life.instanceId, known.incarnation);
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
    const wish = wishes.get(`${host} ${instanceId} ${life.incarnation}`);
    const lately = wish !== undefined && wish.unwantedMs >= startedMs - orderMsMax;
    return lately || !isWanted(host, instanceId, life.incarnation);
  };

  return {
    invariant: 9,
    onCommit({ events }) {
      for (const { key, after } of events) if (after?.kind === 'instance') instanceKeys.set(after.metadata.id, key);
      for (const { before, after } of events) for (const record of [before, after]) noteRecord(record);
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
        noteBirth(host, instanceId, guest.incarnation);
      }
      const present = lives.get(name) ?? newLife(guest.incarnation);
      if (guest.running && !present.running) {
        if (present.startedAtMs.length > 0 && !wasUnwanted(host, instanceId, present))
          return `${told} was started again, and nobody wanted that`;
        present.startedAtMs.push(nowMs());
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
}

function newLife(incarnation: number): Life {
  return { incarnation, running: false, startedAtMs: [], endedMs: undefined };
}

/** Of which life a record tells; undefined: of none. An instance that is on no host may still have guests. */
function lifeOf(
  record: AnyRecord | null,
): { readonly host: string; readonly instanceId: string; readonly incarnation: number } | undefined {
  if (record?.kind === 'instance') {
    const { host = '', incarnation } = record.status;
    return { host, instanceId: record.metadata.id, incarnation };
  }
  if (record?.kind !== 'allocation' || record.consumer.kind !== undefined) return undefined;
  return { host: record.host, instanceId: record.consumer.id, incarnation: record.consumer.incarnation };
}
