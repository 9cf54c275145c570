import { expect, it } from 'vitest';
import { groupUsage } from './group-usage.ts';

const megabyte = 1_000_000;

it('adds the containers of a group up, and counts their one network once', () => {
  const web = {
    cpu_stats: { cpu_usage: { total_usage: 2_500_000_000 } },
    memory_stats: { usage: 9 * megabyte, stats: { inactive_file: 2 * megabyte } },
    blkio_stats: { io_service_bytes_recursive: [entry('read', 4096), entry('write', 512), entry('total', 4608)] },
    networks: { eth0: { rx_bytes: 10, tx_bytes: 20 } },
  };
  const sidecar = {
    cpu_stats: { cpu_usage: { total_usage: 500_000_000 } },
    memory_stats: { usage: megabyte },
    blkio_stats: { io_service_bytes_recursive: [entry('Read', 1), entry('Write', 2)] },
    networks: { eth0: { rx_bytes: 10, tx_bytes: 20 } },
  };
  expect(groupUsage([web, sidecar])).toEqual({
    cpuMs: 3_000,
    memoryBytes: 8 * megabyte,
    diskReadBytes: 4097,
    diskWrittenBytes: 514,
    networkReceivedBytes: 10,
    networkSentBytes: 20,
  });
});

it('does with what an engine without control groups answers', () => {
  const bare = { cpu_stats: { cpu_usage: {} }, memory_stats: null, blkio_stats: null, networks: null };
  expect(groupUsage([bare])).toEqual({ cpuMs: 0, memoryBytes: 0, diskReadBytes: 0, diskWrittenBytes: 0 });
});

function entry(op: string, value: number) {
  return { op, value };
}
