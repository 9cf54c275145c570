// Sums over the fleet, in one pass over the snapshot: what the metrics tell of hosts, instances, jobs, claims and the queue. Pure.

import { type HostStateName, hostStateName } from '../../api/resources/host-state.ts';
import type { InstancePhase } from '../../api/resources/instance.ts';
import type { JobPhase } from '../../api/resources/job.ts';
import { fleetOf } from '../../core/scheduler/fleet.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';

export interface ClassTotal {
  readonly pool: string;
  readonly resourceClass: string;
  /** (total − reserved) × ratio, in the unit of the class. */
  capacity: number;
  /** By allocations. */
  used: number;
}

export interface QueueTotal {
  waiting: number;
  /** Since the oldest was created; milliseconds. */
  oldestMs: number;
}

export interface FleetTotals {
  readonly hosts: ReadonlyMap<HostStateName, number>;
  readonly instances: ReadonlyMap<InstancePhase, number>;
  readonly jobs: ReadonlyMap<JobPhase, number>;
  readonly claims: readonly ClassTotal[];
  /** By project. */
  readonly queue: ReadonlyMap<string, QueueTotal>;
  /** Why instances wait, by the code of the condition Scheduled. */
  readonly reasons: ReadonlyMap<string, number>;
  /** Images that a host could not fetch at its last attempt. */
  readonly imageProblems: number;
  readonly cachedImages: number;
  /** The longest time since a host's agent was heard; milliseconds; 0 without hosts. */
  readonly agentLagMs: number;
}

/** Hosts without a pool count under this name. */
const noPool = 'default';

export function fleetTotals(snapshot: Snapshot, nowMs: number): FleetTotals {
  const hosts = new Map<HostStateName, number>();
  let imageProblems = 0;
  let cachedImages = 0;
  for (const { value } of snapshot.list('host')) {
    count(hosts, hostStateName(value));
    cachedImages += value.status.images.length;
    for (const { problem } of value.status.images) if (problem !== undefined) imageProblems += 1;
  }
  const instances = new Map<InstancePhase, number>();
  const queue = new Map<string, QueueTotal>();
  const reasons = new Map<string, number>();
  for (const { value } of snapshot.list('instance')) {
    const { phase, conditions } = value.status;
    count(instances, phase);
    if (phase !== 'Pending') continue;
    const { project, createdAtMs } = value.metadata;
    const total = queue.get(project) ?? { waiting: 0, oldestMs: 0 };
    total.waiting += 1;
    total.oldestMs = Math.max(total.oldestMs, nowMs - createdAtMs);
    queue.set(project, total);
    count(reasons, conditions.find(({ type }) => type === 'Scheduled')?.reason ?? 'NotDecided');
  }
  const jobs = new Map<JobPhase, number>();
  for (const { value } of snapshot.list('job')) count(jobs, value.status.phase);
  let agentLagMs = 0;
  for (const { value } of snapshot.list('lease')) agentLagMs = Math.max(agentLagMs, nowMs - value.renewedAtMs);
  const claims = claimsOf(snapshot);
  return { hosts, instances, jobs, claims, queue, reasons, imageProblems, cachedImages, agentLagMs };
}

function claimsOf(snapshot: Snapshot): readonly ClassTotal[] {
  const fleet = fleetOf(snapshot);
  const totals = new Map<string, ClassTotal>();
  for (const column of fleet.columns()) {
    const { resourceClass } = column;
    for (let slot = 0; slot < fleet.length; slot++) {
      const host = fleet.hosts[slot];
      if (host === undefined) continue;
      const [capacity, used] = [column.capacity(slot), column.used(slot)];
      if (capacity === 0 && used === 0) continue;
      const pool = host.spec.pool ?? noPool;
      const key = `${pool} ${resourceClass}`;
      const total = totals.get(key) ?? { pool, resourceClass, capacity: 0, used: 0 };
      total.capacity += capacity;
      total.used += used;
      totals.set(key, total);
    }
  }
  return [...totals.values()];
}

function count<K>(counts: Map<K, number>, key: K): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}
