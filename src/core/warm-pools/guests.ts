// The guests of a warm pool that are not claimed: which of them a claim may get, and in which order.

import { isDraining } from '../state/conditions.ts';
import type { WarmPool } from '../../api/resources/warm-pool.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { keys } from '../state/keys.ts';
import type { Entry, Snapshot } from '../state/snapshot.ts';
import { instancesOf } from '../state/views/workload-copies.ts';
import { copyOf } from '../workloads/copy.ts';

export interface WarmGuest {
  readonly entry: Entry<Instance>;
  /** A claim may get it. */
  readonly ready: boolean;
  /** It runs, and is to be suspended; or the other way round. */
  readonly otherPower: boolean;
  /** It has ended, or its host is lost. */
  readonly over: boolean;
  readonly lost: boolean;
  readonly leaving: boolean;
  /** It has a former template, is too old, or its host is drained: it is replaced. */
  readonly stale: boolean;
}

export function guestsOf(snapshot: Snapshot, pool: WarmPool, nowMs: number): readonly WarmGuest[] {
  return instancesOf(snapshot, pool.metadata.id).map((entry) => guestOf(snapshot, entry, pool, nowMs));
}

function guestOf(snapshot: Snapshot, entry: Entry<Instance>, pool: WarmPool, nowMs: number): WarmGuest {
  const { metadata, spec, status } = entry.value;
  const { over, lost, leaving, hostReady } = copyOf(snapshot, entry);
  const host = snapshot.get('host', keys.host(status.host ?? ''))?.value;
  const { state, maxAgeMs = Number.POSITIVE_INFINITY } = pool.spec;
  const runs = status.phase === 'Running' && status.guest?.ready === true;
  const sleeps = status.phase === 'Suspended' && status.readyAtMs !== undefined;
  return {
    entry,
    ready: hostReady && !leaving && (runs || sleeps),
    otherPower: spec.powerState !== state && (runs || sleeps),
    ...{ over, lost, leaving },
    stale:
      status.warmPool?.template !== pool.status.template ||
      nowMs - metadata.createdAtMs >= maxAgeMs ||
      (host !== undefined && isDraining(host)),
  };
}

/** The one that a claim gets: of the present template, running, the oldest; undefined: none is ready. */
export function claimable(guests: readonly WarmGuest[]): WarmGuest | undefined {
  return guests.filter(({ ready }) => ready).toSorted(byPreference)[0];
}

function byPreference(a: WarmGuest, b: WarmGuest): number {
  const [one, other] = [a.entry.value, b.entry.value];
  return (
    Number(a.stale) - Number(b.stale) ||
    Number(one.status.phase !== 'Running') - Number(other.status.phase !== 'Running') ||
    one.metadata.createdAtMs - other.metadata.createdAtMs ||
    (one.metadata.id < other.metadata.id ? -1 : 1)
  );
}
