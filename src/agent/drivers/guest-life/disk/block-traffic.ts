// The traffic of a machine's disks, from what QEMU answers to `query-blockstats`.

import { isRecord } from '../../../../base/is-record.ts';

export function blockTraffic(answer: unknown): { diskReadBytes: number; diskWrittenBytes: number } {
  let [diskReadBytes, diskWrittenBytes] = [0, 0];
  for (const disk of Array.isArray(answer) ? answer : []) {
    const stats: unknown = isRecord(disk) ? disk['stats'] : undefined;
    if (!isRecord(stats)) continue;
    diskReadBytes += countOf(stats['rd_bytes']);
    diskWrittenBytes += countOf(stats['wr_bytes']);
  }
  return { diskReadBytes, diskWrittenBytes };
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}
