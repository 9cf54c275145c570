// Guest usages: the latest measurements that agents reported of their guests, and sums per host. In memory only, and only for hosts whose
// heartbeats this server receives. No decision reads it.

import type { GuestCounters, GuestUsageReport } from '../../api/guests/guest-usage.ts';

export interface MeasuredGuest {
  readonly instanceId: string;
  readonly incarnation: number;
  readonly host: string;
  readonly counters: GuestCounters;
  /** Average number of CPUs in use since the previous measurement; undefined after the first. */
  readonly cpus: number | undefined;
  /** Milliseconds since 1970. */
  readonly measuredAtMs: number;
}

/** Counters, which include guests that no longer exist. */
export const summedCounters = [
  'cpuMs',
  'diskReadBytes',
  'diskWrittenBytes',
  'networkReceivedBytes',
  'networkSentBytes',
] as const;
export type Sums = Record<(typeof summedCounters)[number], number>;

interface MeasuredHost {
  readonly sampledMs: number;
  readonly receivedMs: number;
  readonly guests: ReadonlyMap<string, MeasuredGuest>;
  /** Totals since this server's first measurement of the host. */
  readonly sums: Sums;
}

interface Now {
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly monotonicMs: number;
}

export class GuestUsages {
  readonly #hosts = new Map<string, MeasuredHost>();

  note(host: string, { sampledMs, guests: reported }: GuestUsageReport, { nowMs, monotonicMs }: Now): void {
    const before = this.#hosts.get(host);
    const sums = before?.sums ?? noSums();
    const passedMs = before === undefined ? 0 : sampledMs - before.sampledMs;
    const guests = new Map<string, MeasuredGuest>();
    for (const { instanceId, incarnation, ...counters } of reported) {
      const known = before?.guests.get(instanceId);
      const same = known?.incarnation === incarnation ? known.counters : undefined;
      if (before !== undefined) addGrowth(sums, same, counters);
      const cpuMs = same === undefined ? undefined : counters.cpuMs - same.cpuMs;
      // Below 0: the guest was restarted.
      const cpus = cpuMs === undefined || cpuMs < 0 || passedMs <= 0 ? undefined : cpuMs / passedMs;
      guests.set(instanceId, { instanceId, incarnation, host, counters, cpus, measuredAtMs: nowMs });
    }
    this.#hosts.set(host, { sampledMs, receivedMs: monotonicMs, guests, sums });
  }

  /** Usage of a guest on this host, if its latest measurement was received at `sinceMs` (monotonic clock) or later. */
  of(host: string, instanceId: string, sinceMs: number): MeasuredGuest | undefined {
    const measured = this.#hosts.get(host);
    return measured && measured.receivedMs >= sinceMs ? measured.guests.get(instanceId) : undefined;
  }

  /** Hosts, with the usage that was measured at `sinceMs` or later. */
  *hosts(sinceMs: number): Generator<{ host: string; sums: Sums; guests: Iterable<MeasuredGuest> }> {
    for (const [host, { receivedMs, guests, sums }] of this.#hosts)
      yield { host, sums, guests: receivedMs >= sinceMs ? guests.values() : [] };
  }

  /** What all guests of each host use together, as measured at `sinceMs` or later. */
  totals(sinceMs: number): ReadonlyMap<string, { readonly milliCpus: number; readonly memoryMiB: number }> {
    const totals = new Map<string, { readonly milliCpus: number; readonly memoryMiB: number }>();
    for (const [host, { receivedMs, guests }] of this.#hosts) {
      if (receivedMs < sinceMs) continue;
      let [cpus, bytes] = [0, 0];
      for (const guest of guests.values()) {
        cpus += guest.cpus ?? 0;
        bytes += guest.counters.memoryBytes;
      }
      totals.set(host, { milliCpus: Math.round(cpus * 1_000), memoryMiB: Math.round(bytes / 1024 ** 2) });
    }
    return totals;
  }

  /** Forgets a removed host. */
  forget(host: string): void {
    this.#hosts.delete(host);
  }
}

function noSums(): Sums {
  return { cpuMs: 0, diskReadBytes: 0, diskWrittenBytes: 0, networkReceivedBytes: 0, networkSentBytes: 0 };
}

/** For a new or restarted guest, the whole value counts. */
function addGrowth(sums: Sums, before: GuestCounters | undefined, now: GuestCounters): void {
  for (const name of summedCounters) {
    const [then = 0, value = 0] = [before?.[name], now[name]];
    sums[name] += value >= then ? value - then : value;
  }
}
