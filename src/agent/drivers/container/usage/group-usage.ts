// The usage of a container, from the `stats` of podman and Docker.

import type { GuestCounters } from '../../../../api/guests/guest-usage.ts';
import type { EngineStats } from '../engine-answers.ts';

/** The usage of a group: the sum over its containers, except the shared network, which each container reports as its own. */
export function groupUsage(all: readonly EngineStats[]): GuestCounters {
  const total = { cpuMs: 0, memoryBytes: 0, diskReadBytes: 0, diskWrittenBytes: 0 };
  for (const { cpu_stats: cpu, memory_stats: memory, blkio_stats: disks } of all) {
    total.cpuMs += Math.floor((cpu.cpu_usage.total_usage ?? 0) / 1e6);
    // As in `docker stats`, inactive page cache is not counted.
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
