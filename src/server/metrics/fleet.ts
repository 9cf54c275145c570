// Metrics of the fleet: hosts, instances and jobs by state, what is claimed, what waits and why. All of one scrape come from one pass.

import { Gauge, type Registry } from 'prom-client';
import { hostStateNames } from '../../api/resources/host-state.ts';
import { InstancePhase } from '../../api/resources/instance.ts';
import { JobPhase } from '../../api/resources/job.ts';
import type { Clock } from '../../base/clock.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { type FleetTotals, fleetTotals } from './fleet-totals.ts';

/** Metrics of one scrape are collected one after the other: within this time they share a pass. */
const keptMs = 500;
/** The number of projects is not bounded, that of time series is: the rest is summed under the empty name. */
const projectsMax = 100;

export class Totals {
  readonly #snapshot: Snapshot;
  readonly #clock: Clock;
  #known: FleetTotals | undefined;
  #atMs = 0;

  constructor(parts: { readonly snapshot: Snapshot; readonly clock: Clock }) {
    this.#snapshot = parts.snapshot;
    this.#clock = parts.clock;
  }

  read(): FleetTotals {
    const nowMs = this.#clock.monotonicMs();
    if (this.#known && nowMs - this.#atMs < keptMs) return this.#known;
    this.#known = fleetTotals(this.#snapshot, this.#clock.nowMs());
    this.#atMs = nowMs;
    return this.#known;
  }
}

type Rows = Iterable<readonly [labels: Readonly<Record<string, string>>, value: number]>;

type Measure = (name: string, help: string, labelNames: readonly string[], rows: (read: FleetTotals) => Rows) => void;

function measuring(registry: Registry, totals: Totals): Measure {
  return (name, help, labelNames, rows) =>
    registry.registerMetric(
      new Gauge({
        ...{ name: `berth_${name}`, help, labelNames: [...labelNames], registers: [] },
        collect() {
          this.reset();
          for (const [labels, value] of rows(totals.read())) this.set({ ...labels }, value);
        },
      }),
    );
}

/** `named`: by project, for those who may know their names; others get sums. */
export function measureQueue(registry: Registry, totals: Totals, { named }: { readonly named: boolean }): void {
  const gauge = measuring(registry, totals);
  const most = named ? projectsMax : 0;
  gauge(
    'queue_instances',
    'Instances that wait for a host, by project; the empty name: those of further projects',
    ['project'],
    (read) => queueRows(read, { most, valueOf: ({ waiting }) => waiting, together: (a, b) => a + b }),
  );
  gauge('queue_oldest_seconds', 'How long the oldest of them has waited', ['project'], (read) =>
    queueRows(read, { most, valueOf: ({ oldestMs }) => oldestMs / 1_000, together: Math.max }),
  );
}

export function measureFleet(registry: Registry, totals: Totals): void {
  const gauge = measuring(registry, totals);
  gauge('hosts_by_state', 'Hosts that are known, by their state', ['state'], ({ hosts }) =>
    all(
      'state',
      hostStateNames.filter((state) => state !== 'Removed'),
      hosts,
    ),
  );
  gauge('instances_by_phase', 'Instances that are known, by their phase', ['phase'], ({ instances }) =>
    all('phase', InstancePhase.enum, instances),
  );
  gauge('jobs_by_phase', 'Jobs that are kept, by their phase', ['phase'], ({ jobs }) =>
    all('phase', JobPhase.enum, jobs),
  );
  gauge(
    'capacity',
    'What can be claimed in all, by pool and resource class, in the unit of the class',
    ['pool', 'class'],
    ({ claims }) => claims.map(({ pool, resourceClass, capacity }) => [{ pool, class: resourceClass }, capacity]),
  );
  gauge(
    'claimed',
    'What is claimed, by pool and resource class, in the unit of the class',
    ['pool', 'class'],
    ({ claims }) => claims.map(({ pool, resourceClass, used }) => [{ pool, class: resourceClass }, used]),
  );
  gauge('queue_reasons', 'Instances that wait for a host, by the reason', ['reason'], ({ reasons }) =>
    [...reasons].map(([reason, count]) => [{ reason }, count]),
  );
  gauge('host_images', 'Images in the caches of hosts', [], ({ cachedImages }) => [[{}, cachedImages]]);
  gauge('host_image_problems', 'Images that a host could not fetch at its last attempt', [], ({ imageProblems }) => [
    [{}, imageProblems],
  ]);
  gauge(
    'agent_lag_seconds',
    'The longest time since the agent of a host that is not silent was heard',
    [],
    ({ agentLagMs }) => [[{}, agentLagMs / 1_000]],
  );
}

/** A value for each name, 0 where there is none: an alert sees a drop to nothing. */
function all<K extends string>(label: string, names: readonly K[], counts: ReadonlyMap<K, number>): Rows {
  return names.map((name) => [{ [label]: name }, counts.get(name) ?? 0]);
}

type Queue = FleetTotals['queue'];
type QueueEntry = Queue extends ReadonlyMap<string, infer V> ? V : never;

function queueRows(
  { queue }: FleetTotals,
  {
    most,
    valueOf,
    together,
  }: {
    readonly most: number;
    readonly valueOf: (total: QueueEntry) => number;
    readonly together: (a: number, b: number) => number;
  },
): Rows {
  const largest = [...queue].sort(([, a], [, b]) => b.waiting - a.waiting);
  const rows: [Record<string, string>, number][] = largest
    .slice(0, most)
    .map(([project, total]) => [{ project }, valueOf(total)]);
  const rest = largest.slice(most).map(([, total]) => valueOf(total));
  return rest.length === 0 ? rows : [...rows, [{ project: '' }, rest.reduce((a, b) => together(a, b))]];
}
