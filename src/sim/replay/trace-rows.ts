// Some rows of a trace, in another order if need be, as a trace of its own.

import type { SharedNames, Trace } from './trace.ts';

export function rowsOf(trace: Trace, rows: readonly number[]): Trace {
  const integers = (column: Int32Array): Int32Array => Int32Array.from(rows, (row) => column[row] ?? 0);
  const shared = ({ names, of }: SharedNames): SharedNames => ({ names, of: integers(of) });
  return {
    rows: rows.length,
    ids: rows.map((row) => trace.ids[row] ?? ''),
    group: shared(trace.group),
    arriveS: integers(trace.arriveS),
    departS: integers(trace.departS),
    cpuMilli: integers(trace.cpuMilli),
    memoryMiB: integers(trace.memoryMiB),
    diskMiB: integers(trace.diskMiB),
    gpus: integers(trace.gpus),
    gpuMilli: integers(trace.gpuMilli),
    networkPercent: integers(trace.networkPercent),
    gpuSpec: shared(trace.gpuSpec),
    maxPerHost: integers(trace.maxPerHost),
    recordedHost: shared(trace.recordedHost),
  };
}
