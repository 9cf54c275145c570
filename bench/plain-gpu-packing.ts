// First fit and best fit for GPUs, on plain arrays: what the suite `packing` is compared with where hosts differ. Tasks come one by one and
// stay; a share goes to the GPU with the least left, whole ones to the first that are free.

import type { ReplayFleet } from '../src/sim/replay/replay-fleet.ts';
import type { Trace } from '../src/sim/replay/trace.ts';

/** Of the fleet's GPUs, how many percent are handed out once every row has come. */
export function plainGpuPercent(rule: 'first fit' | 'best fit', trace: Trace, { hosts }: ReplayFleet): number {
  const cpu = Float64Array.from(hosts, ({ shape }) => shape.cpuMilli);
  const memory = Float64Array.from(hosts, ({ shape }) => shape.memoryMiB ?? Number.POSITIVE_INFINITY);
  const free = hosts.map(({ shape }) => Array.from({ length: shape.gpus }, () => 1000));
  const freeInAll = Float64Array.from(hosts, ({ shape }) => 1000 * shape.gpus);
  const all = freeInAll.reduce((sum, each) => sum + each, 0);
  const cpuMost = cpu.reduce((most, each) => Math.max(most, each), 1);
  const gpuMost = freeInAll.reduce((most, each) => Math.max(most, each), 1);
  const accepts = trace.gpuSpec.names.map((text) => {
    const models = new Set(text.split('|'));
    return hosts.map(({ shape }) => text === '' || models.has(shape.gpuModel));
  });
  for (let row = 0; row < trace.rows; row++) {
    const cpuAsked = trace.cpuMilli[row] ?? 0;
    const memoryAsked = trace.memoryMiB[row] ?? 0;
    const count = trace.gpus[row] ?? 0;
    const milli = count === 1 ? (trace.gpuMilli[row] ?? 0) : 1000;
    const accepted = count === 0 ? undefined : accepts[trace.gpuSpec.of[row] ?? 0];
    let best = -1;
    let leastLeft = Number.POSITIVE_INFINITY;
    for (let host = 0; host < hosts.length; host++) {
      if ((cpu[host] ?? 0) < cpuAsked || (memory[host] ?? 0) < memoryAsked) continue;
      if (accepted && !(accepted[host] && (freeInAll[host] ?? 0) >= count * milli)) continue;
      const left = ((cpu[host] ?? 0) - cpuAsked) / cpuMost + (freeInAll[host] ?? 0) / gpuMost;
      if (left >= leastLeft || (count > 0 && countAtLeast(free[host] ?? [], milli) < count)) continue;
      best = host;
      leastLeft = left;
      if (rule === 'first fit') break;
    }
    if (best < 0) continue;
    cpu[best] = (cpu[best] ?? 0) - cpuAsked;
    memory[best] = (memory[best] ?? 0) - memoryAsked;
    freeInAll[best] = (freeInAll[best] ?? 0) - count * milli;
    for (let taken = 0; taken < count; taken++) takeTightest(free[best] ?? [], milli);
  }
  return 100 * (1 - freeInAll.reduce((sum, each) => sum + each, 0) / all);
}

function countAtLeast(free: readonly number[], milli: number): number {
  let count = 0;
  for (const each of free) if (each >= milli) count += 1;
  return count;
}

function takeTightest(free: number[], milli: number): void {
  let best = -1;
  for (const [i, each] of free.entries()) if (each >= milli && (best < 0 || each < (free[best] ?? 0))) best = i;
  if (best >= 0) free[best] = (free[best] ?? 0) - milli;
}
