// What a container uses, from what an engine answers to `stats`, as podman and Docker have it.

import type { GuestCounters } from '../../../../api/guests/guest-usage.ts';
import type { EngineStats } from '../engine-answers.ts';

/** Of a group: the containers together; they share one network, which each shows as its own. */
export function groupUsage(all: readonly EngineStats[]): GuestCounters {
  const total = { cpuMs: 0, memoryBytes: 0, diskReadBytes: 0, diskWrittenBytes: 0 };
  for (const { cpu_stats: cpu, memory_stats: memory, blkio_stats: disks } of all) {
    total.cpuMs += Math.floor((cpu.cpu_usage.total_usage ?? 0) / 1e6);
    // As `docker stats` does it: pages of files that can be dropped at once are not counted.
    total.memoryBytes += Math.max(0, (memory?.usage ?? 0) - (memory?.stats?.['inactive_file'] ?? 0));
    for (const { op, value } of disks?.io_service_bytes_recursive ?? []) {
      if (op.toLowerCase() === 'read') total.diskReadBytes += value;
      if (op.toLowerCase() === 'write') total.diskWrittenBytes += value;
    }
  }
  const networks = Object.values(all.find(({ networks: each }) => each)?.networks ?? {});
  if (networks.length === 0) return total;
  return {
    ...total,
    networkReceivedBytes: networks.reduce((sum, { rx_bytes: bytes }) => sum + bytes, 0),
    networkSentBytes: networks.reduce((sum, { tx_bytes: bytes }) => sum + bytes, 0),
  };
}
