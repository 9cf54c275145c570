// What is free and of no use: room on hosts in use where the request that is made most often does not fit.

import { gpuClass } from '../../api/resources/host-rules.ts';
import type { Engine } from '../../core/scheduler/engine/engine.ts';
import type { Fleet } from '../../core/scheduler/fleet.ts';
import type { Request } from '../../core/scheduler/request.ts';
import type { Slot } from '../../core/scheduler/engine/slot.ts';
import type { Trace } from './trace.ts';

const typicalRows = new WeakMap<Trace, { readonly plain: number; readonly gpu: number }>();

/** A row that asks for what is asked for most often, of all rows and of those that ask for GPUs; -1 when there is none. */
export function typicalOf(trace: Trace): { readonly plain: number; readonly gpu: number } {
  let typical = typicalRows.get(trace);
  if (!typical) {
    typical = { plain: mostFrequent(trace, () => true), gpu: mostFrequent(trace, (row) => (trace.gpus[row] ?? 0) > 0) };
    typicalRows.set(trace, typical);
  }
  return typical;
}

function mostFrequent(trace: Trace, isMeant: (row: number) => boolean): number {
  const counts = new Map<string, { readonly row: number; count: number }>();
  for (let row = 0; row < trace.rows; row++) {
    if (!isMeant(row)) continue;
    const key = `${trace.cpuMilli[row]},${trace.memoryMiB[row]},${trace.gpus[row]},${trace.gpuMilli[row]},${trace.gpuSpec.of[row]}`;
    const known = counts.get(key);
    if (known) known.count += 1;
    else counts.set(key, { row, count: 1 });
  }
  let best = -1;
  let most = 0;
  for (const { row, count } of counts.values()) {
    if (count <= most) continue;
    most = count;
    best = row;
  }
  return best;
}

/** Shares of what hosts in use have: 0..1. */
export function strandedOf(
  engine: Engine,
  { plain, gpu }: { readonly plain: Request | null; readonly gpu: Request | null },
): { readonly cpu: number; readonly memory: number; readonly gpu: number } {
  return {
    cpu: strandedShare(engine, 'VCPU', plain),
    memory: strandedShare(engine, 'MEMORY_MB', plain),
    gpu: strandedShare(engine, gpuClass, gpu),
  };
}

function strandedShare(engine: Engine, resourceClass: string, request: Request | null): number {
  const { fleet } = engine;
  const column = fleet.column(resourceClass);
  if (!column || !request || (request.assigned[resourceClass] ?? 0) === 0) return 0;
  let all = 0;
  let stranded = 0;
  for (let slot = 0; slot < fleet.length; slot++) {
    if (!isInUse(fleet, slot)) continue;
    const capacity = column.capacity(slot);
    all += capacity;
    if (!engine.fitsAt(request, slot)) stranded += capacity - column.used(slot);
  }
  return all === 0 ? 0 : stranded / all;
}

function isInUse({ guests }: Fleet, slot: Slot): boolean {
  return (guests[slot] ?? 0) > 0;
}
