// What this control plane measures, in the form that Prometheus reads. Computed only when it is read.

import { Counter, Gauge, Registry } from 'prom-client';
import { FindingCode } from '../../api/verify.ts';
import type { Clock } from '../../base/clock.ts';
import type { Cache } from '../../core/state/cache.ts';
import { type Activity, measureWatches } from './activity.ts';
import { type GuestMetricsParts, measureGuests, measureHostGuests } from './guest-metrics.ts';
import { measureBoots } from './boots.ts';
import { measureFleet, measureQueue, Totals } from './fleet.ts';
import { measureBySourceNames } from './source-names.ts';
import type { Survival } from '../../api/plans/host-plan.ts';
import type { Outside } from '../outside.ts';
import type { FleetSurvival } from '../survival.ts';
import type { Verifier } from '../verifier.ts';
import { measureWarmPools } from './warm-pools.ts';
import { type ConnectionCounts, dropReasons } from '../http/connections/connections.ts';

export interface MetricsParts {
  readonly cache: Cache;
  readonly clock: Clock;
  readonly activity: Activity;
  readonly watches: () => ReadonlyMap<string, number>;
  /** Also under the names of the orchestrator before. */
  readonly sourceNames: boolean;
  readonly guests: GuestMetricsParts;
  /** Each guest as well. */
  readonly guestMetrics: boolean;
  readonly verifier: Verifier;
  readonly ready: () => boolean;
  readonly leads: () => boolean;
  readonly overloaded: () => boolean;
  /** Absent where there are no sockets. */
  readonly connections?: ConnectionCounts | undefined;
  readonly outside?: Outside | undefined;
  readonly survival?: FleetSurvival;
}

export interface Metrics {
  readonly contentType: string;
  /** `named`: with the names of projects. */
  text(options: { readonly named: boolean }): Promise<string>;
}

export function createMetrics({ cache, verifier, ready, leads, overloaded, ...parts }: MetricsParts): Metrics {
  const { clock, activity, watches, sourceNames, connections, outside, survival } = parts;
  const registry = new Registry();
  const gauge = (name: string, help: string, read: () => number): void => {
    registry.registerMetric(
      new Gauge({
        name,
        help,
        registers: [],
        collect() {
          this.set(read());
        },
      }),
    );
  };
  gauge('berth_ready', '1 while the store is followed and may be written', () => Number(ready()));
  gauge('berth_leader', '1 while this control plane runs the controllers', () => Number(leads()));
  gauge('berth_overloaded', '1 while this control plane is overloaded', () => Number(overloaded()));
  gauge('berth_store_revision', 'The newest revision that this control plane has read', () => cache.revision);
  gauge('berth_hosts', 'Hosts that are known', () => cache.count('host'));
  const totals = new Totals({ snapshot: cache, clock });
  measureFleet(registry, totals);
  const queues = { named: new Registry(), summed: new Registry() };
  measureQueue(queues.named, totals, { named: true });
  measureQueue(queues.summed, totals, { named: false });
  measureHostGuests(registry, parts.guests);
  if (parts.guestMetrics) measureGuests(queues.named, parts.guests);
  activity.register(registry);
  measureBoots(registry, queues.named, cache);
  measureWatches(registry, watches);
  if (sourceNames) measureBySourceNames(registry, { snapshot: cache, totals, activity });
  gauge(
    'berth_hosts_held',
    'Hosts whose instances are not replaced yet, because many hosts fell silent together',
    () => {
      let held = 0;
      for (const { value } of cache.list('host')) held += value.status.down?.heldUntilMs === undefined ? 0 : 1;
      return held;
    },
  );
  gauge('berth_mass_loss', '1 while hosts are down or silent of which many fell silent together', () => {
    for (const { value } of cache.list('host'))
      if (value.status.conditions.some(({ type, status }) => type === 'MassLoss' && status === 'True')) return 1;
    return 0;
  });
  gauge('berth_instances', 'Instances that are known', () => cache.count('instance'));
  // The names with "audit" are the former ones, kept for one version so that alerts continue to work.
  for (const word of ['verify', 'audit']) measureConsistency(registry, verifier, word);
  measureWarmPools(registry, cache);
  if (survival) measureSurvival(registry, survival);
  if (connections) measureConnections(registry, connections);
  if (outside) {
    measureBuses(registry, outside);
    measureWebhooks(registry, outside);
    measureInventories(registry, outside);
  }
  return {
    contentType: registry.contentType,
    text: async ({ named }) => `${await registry.metrics()}${await (named ? queues.named : queues.summed).metrics()}`,
  };
}

function measureSurvival(registry: Registry, survival: FleetSurvival): void {
  const gauge = (name: string, help: string, valueOf: (read: Survival) => number): void =>
    registry.registerMetric(
      new Gauge({
        name,
        help,
        registers: [],
        async collect() {
          this.set(valueOf(await survival.read()));
        },
      }),
    );
  gauge(
    'berth_fleet_survives_host_loss',
    '1 if the instances of any one host would fit on the others',
    ({ survives }) => Number(survives),
  );
  gauge(
    'berth_hosts_not_replaceable',
    'Hosts whose instances may not fit on the others',
    ({ notShownCount }) => notShownCount,
  );
}

function measureConsistency(registry: Registry, verifier: Verifier, word: string): void {
  registry.registerMetric(
    new Gauge({
      name: `berth_${word}_findings`,
      help: 'Inconsistencies that the last consistency check found, by kind',
      labelNames: ['code'],
      registers: [],
      collect() {
        for (const code of FindingCode.enum)
          this.set({ code }, verifier.findings.filter((finding) => finding.code === code).length);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: `berth_${word}_oldest_finding_seconds`,
      help: 'Age of the oldest of them',
      registers: [],
      collect() {
        this.set(Math.max(0, ...verifier.findings.map(({ ageMs }) => ageMs / 1000)));
      },
    }),
  );
}

/** One gauge for each measure, with a value for each row. */
function gauges<Row>(
  registry: Registry,
  label: string,
  {
    measures,
    rows,
    nameOf,
  }: {
    readonly measures: readonly (readonly [name: string, help: string, valueOf: (row: Row) => number | undefined])[];
    readonly rows: () => readonly Row[];
    readonly nameOf: (row: Row) => string;
  },
): void {
  for (const [name, help, valueOf] of measures)
    registry.registerMetric(
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers: [],
        collect() {
          this.reset();
          for (const row of rows()) {
            const value = valueOf(row);
            if (value !== undefined) this.set({ [label]: nameOf(row) }, value);
          }
        },
      }),
    );
}

function measureBuses(registry: Registry, outside: Outside): void {
  gauges(registry, 'bus', {
    measures: [
      ['berth_event_bus_lag_events', 'Events that an event bus has yet to acknowledge', ({ events }) => events],
      ['berth_event_bus_lag_seconds', 'Age of the oldest of them', ({ ageMs }) => ageMs / 1_000],
    ],
    rows: () => outside.lags(),
    nameOf: ({ bus }) => bus,
  });
}

function measureWebhooks(registry: Registry, outside: Outside): void {
  registry.registerMetric(
    new Counter({
      name: 'berth_webhook_attempts_total',
      help: 'Attempts to deliver an event to a webhook, by outcome: a failed one is tried again, a parked one was the last',
      labelNames: ['outcome'],
      registers: [],
      collect() {
        this.reset();
        for (const [outcome, count] of Object.entries(outside.webhooks()?.outcomes ?? {})) this.inc({ outcome }, count);
      },
    }),
  );
  gauges(registry, 'webhook', {
    measures: [
      ['berth_webhook_waiting_events', 'Events that a webhook has yet to be sent', ({ waiting }) => waiting],
      ['berth_webhook_unread_events', 'Events that were not looked at yet for a webhook', ({ unread }) => unread],
      [
        'berth_webhook_parked_events',
        'Events that a webhook has not taken at the last attempt',
        ({ parked }) => parked,
      ],
      ['berth_webhook_lag_seconds', 'Age of the oldest event that waits', ({ ageMs }) => ageMs / 1_000],
    ],
    rows: () => outside.webhooks()?.backlogs ?? [],
    nameOf: ({ webhook }) => webhook,
  });
}

function measureInventories(registry: Registry, outside: Outside): void {
  gauges(registry, 'inventory', {
    measures: [
      ['berth_inventory_hosts', 'Hosts of an inventory', ({ hosts }) => hosts],
      ['berth_inventory_fresh', '1 while the last list of an inventory is applied', ({ fresh }) => Number(fresh)],
      [
        'berth_inventory_age_seconds',
        'Time since the last good list of an inventory that is polled',
        ({ ageMs }) => (ageMs === undefined ? undefined : ageMs / 1_000),
      ],
    ],
    rows: () => outside.inventories(),
    nameOf: ({ inventory }) => inventory,
  });
}

function measureConnections(registry: Registry, connections: ConnectionCounts): void {
  registry.registerMetric(
    new Gauge({
      name: 'berth_connections',
      help: 'Connections that are open, by whether they have shown a valid token',
      labelNames: ['authenticated'],
      registers: [],
      collect() {
        this.set({ authenticated: 'true' }, connections.authenticated);
        this.set({ authenticated: 'false' }, connections.unauthenticated);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: 'berth_connections_max',
      help: 'How many of them may be open; "any" counts those with a token too',
      labelNames: ['authenticated'],
      registers: [],
      collect() {
        this.set({ authenticated: 'any' }, connections.limits.openMax);
        this.set({ authenticated: 'false' }, connections.limits.unauthenticatedMax);
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: 'berth_unread_answers_bytes',
      help: 'Memory held by responses that their clients have not read yet',
      registers: [],
      collect() {
        this.set(connections.unreadBytes);
      },
    }),
  );
  registry.registerMetric(
    new Counter({
      name: 'berth_connections_dropped_total',
      help: 'Connections that were closed because of a limit, by reason',
      labelNames: ['reason'],
      registers: [],
      collect() {
        this.reset();
        for (const reason of dropReasons) this.inc({ reason }, connections.dropped(reason));
      },
    }),
  );
}
