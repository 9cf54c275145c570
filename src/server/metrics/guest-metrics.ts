// Metrics of guest usage: sums per host, and optionally each guest. Only for hosts whose heartbeats this server receives.

import { Counter, Gauge, type Registry } from 'prom-client';
import { keys } from '../../core/state/keys.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { GuestUsages, MeasuredGuest, summedCounters } from './guest-usages.ts';

export interface GuestMetricsParts {
  readonly snapshot: Snapshot;
  readonly usages: GuestUsages;
  /** On the monotonic clock: older measurements are ignored. */
  readonly freshSinceMs: () => number;
}

/** Maximum number of time series of guests per metric; further guests are omitted. */
const guestsMax = 5_000;

const counted: readonly {
  readonly of: (typeof summedCounters)[number];
  readonly name: string;
  readonly what: string;
  /** The counter in the unit of the metric. */
  readonly factor: number;
}[] = [
  { of: 'cpuMs', name: 'cpu_seconds_total', what: 'Processor time that guests used', factor: 0.001 },
  { of: 'diskReadBytes', name: 'disk_read_bytes_total', what: 'Bytes that guests read from disks', factor: 1 },
  { of: 'diskWrittenBytes', name: 'disk_written_bytes_total', what: 'Bytes that guests wrote to disks', factor: 1 },
  { of: 'networkReceivedBytes', name: 'network_received_bytes_total', what: 'Bytes that guests received', factor: 1 },
  { of: 'networkSentBytes', name: 'network_sent_bytes_total', what: 'Bytes that guests sent', factor: 1 },
];

/** Sums of known hosts; for a pool use `sum by (pool)`. */
export function measureHostGuests(registry: Registry, { snapshot, usages, freshSinceMs }: GuestMetricsParts): void {
  const labelNames = ['host', 'pool'];
  const labelsOf = (host: string): { host: string; pool: string } | undefined => {
    const found = snapshot.get('host', keys.host(host));
    return found && { host, pool: found.value.spec.pool ?? '' };
  };
  for (const { of, name, what, factor } of counted)
    registry.registerMetric(
      new Counter({
        name: `berth_host_guests_${name}`,
        help: `${what}, by host, since this server first heard of the host`,
        labelNames,
        registers: [],
        collect() {
          this.reset();
          for (const { host, sums } of usages.hosts(freshSinceMs())) {
            const labels = labelsOf(host);
            if (labels) this.inc(labels, sums[of] * factor);
            else usages.forget(host);
          }
        },
      }),
    );
  registry.registerMetric(
    new Gauge({
      name: 'berth_host_guests_memory_bytes',
      help: "What guests hold of their host's memory now, by host",
      labelNames,
      registers: [],
      collect() {
        this.reset();
        for (const { host, guests } of usages.hosts(freshSinceMs())) {
          const labels = labelsOf(host);
          let bytes = 0;
          for (const { counters } of guests) bytes += counters.memoryBytes;
          if (labels) this.set(labels, bytes);
        }
      },
    }),
  );
}

/** Each guest by project and name: only for callers who may read these. */
export function measureGuests(registry: Registry, parts: GuestMetricsParts): void {
  const labelNames = ['project', 'instance', 'host'];
  for (const { of, name, what, factor } of counted)
    registry.registerMetric(
      new Counter({
        name: `berth_guest_${name}`,
        help: `${what}, by guest, since its start`,
        labelNames,
        registers: [],
        collect() {
          this.reset();
          for (const { labels, counters } of eachGuest(parts))
            if (counters[of] !== undefined) this.inc(labels, counters[of] * factor);
        },
      }),
    );
  registry.registerMetric(
    new Gauge({
      name: 'berth_guest_memory_bytes',
      help: "What a guest holds of its host's memory now",
      labelNames,
      registers: [],
      collect() {
        this.reset();
        for (const { labels, counters } of eachGuest(parts)) this.set(labels, counters.memoryBytes);
      },
    }),
  );
}

interface LabelledGuest extends MeasuredGuest {
  readonly labels: { readonly project: string; readonly instance: string; readonly host: string };
}

function* eachGuest({ snapshot, usages, freshSinceMs }: GuestMetricsParts): Generator<LabelledGuest> {
  let count = 0;
  for (const { host, guests } of usages.hosts(freshSinceMs())) {
    for (const guest of guests) {
      const consumer = snapshot.allocationsOfConsumer(guest.instanceId)[0]?.value.consumer;
      if (consumer === undefined) continue;
      if (++count > guestsMax) return;
      yield { ...guest, labels: { project: consumer.project, instance: consumer.name, host } };
    }
  }
}
