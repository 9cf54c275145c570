// Demand: how much an instance asks for and of which kind of provider, from its own numbers, size, image, pool, GPUs,
// NUMA cells and resource query. Parsed queries are cached weakly by the placement they stand in.

import { gpuClass, gpuModelTrait, gpuWhole } from '../../api/resources/host-rules.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { parseResourceQuery, type ResourceQuery } from '../../api/resource-query.ts';
import { cpuShareOf } from '../ledger/cpu-share.ts';
import type { Demand, Portion } from '../ledger/tree.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** The parts of a spec that state an amount. The spec of a task has no image. */
export type AskingSpec = Pick<
  InstanceSpec,
  'size' | 'cpus' | 'memoryMiB' | 'diskGiB' | 'resources' | 'gpus' | 'numaCells' | 'placement' | 'ports'
> & {
  readonly image?: string | undefined;
  readonly containers?: InstanceSpec['containers'] | undefined;
  readonly volumes?: InstanceSpec['volumes'] | undefined;
  readonly run?: InstanceSpec['run'] | undefined;
  readonly checks?: InstanceSpec['checks'] | undefined;
  readonly firmware?: InstanceSpec['firmware'] | undefined;
  readonly tpm?: InstanceSpec['tpm'] | undefined;
  /** Of a task only. */
  readonly ttlMs?: number;
};

export interface Room {
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly diskGiB: number;
}

/** The defaults of Orchard, for an instance whose spec, size, image and pool state no amount. */
export const roomDefault = { cpus: 4, memoryMiB: 8192 } as const;

/**
 * The amounts of an instance: its own numbers, else those of its size, else the sum of its containers, else of its image, else the defaults of its pool
 * (of the pool `default` when it names none), else 4 CPUs and 8192 MiB; and the disk of its image. Does not depend on
 * the host, so every host is asked for the same amounts.
 */
export function roomOf(snapshot: Snapshot, spec: AskingSpec): Room {
  const size = spec.size === undefined ? undefined : snapshot.get('size', keys.size(spec.size))?.value.spec;
  const image = spec.image === undefined ? undefined : snapshot.imageByName(spec.image)?.value.spec.defaults;
  const cpus = spec.cpus ?? size?.cpus ?? ofContainers(spec, 'cpus') ?? image?.cpus;
  const memoryMiB = spec.memoryMiB ?? size?.memoryMiB ?? ofContainers(spec, 'memoryMiB') ?? image?.memoryMiB;
  const pool = cpus === undefined || memoryMiB === undefined ? poolDefaults(snapshot, spec.placement.pool) : undefined;
  return {
    cpus: cpus ?? pool?.cpus ?? roomDefault.cpus,
    memoryMiB: memoryMiB ?? pool?.memoryMiB ?? roomDefault.memoryMiB,
    diskGiB: spec.diskGiB ?? size?.diskGiB ?? disksOf(spec) ?? image?.diskGiB ?? 0,
  };
}

/** The sum of all containers; undefined when one does not state its amount: then the instance as a whole is asked for. */
function ofContainers({ containers }: AskingSpec, field: 'cpus' | 'memoryMiB'): number | undefined {
  if (containers === undefined) return undefined;
  let milli = 0;
  for (const container of containers) {
    const amount = container[field];
    if (amount === undefined) return undefined;
    milli += Math.round(amount * 1000);
  }
  return milli / 1000;
}

/** A container without one has the little that its engine needs. */
function disksOf({ containers }: AskingSpec): number | undefined {
  const stated = containers?.flatMap(({ diskGiB }) => (diskGiB === undefined ? [] : [diskGiB])) ?? [];
  return stated.length === 0 ? undefined : stated.reduce((sum, each) => sum + each, 0);
}

function poolDefaults(snapshot: Snapshot, pool = 'default') {
  return snapshot.get('pool', keys.pool(pool))?.value.spec.defaults;
}

export function demandOf(snapshot: Snapshot, spec: AskingSpec): Demand {
  const room = roomOf(snapshot, spec);
  const amounts: Record<string, number> = { VCPU: cpuShareOf(room.cpus), MEMORY_MB: room.memoryMiB };
  if (room.diskGiB > 0) amounts['DISK_GB'] = room.diskGiB;
  for (const resourceClass in spec.resources) amounts[resourceClass] = spec.resources[resourceClass] ?? 0;
  if (spec.gpus === undefined && spec.numaCells === undefined && spec.placement.query === undefined)
    return { amounts, portions: noPortions };
  const portions: Portion[] = [];
  if (spec.gpus) portions.push(gpuPortion(spec.gpus));
  if (spec.numaCells !== undefined) portions.push(takeCells(amounts, spec.numaCells));
  const query = queryOf(spec.placement);
  if (!query) return { amounts, portions };
  portions.push(...takeQuery(amounts, query));
  const { sameSubtree } = query;
  return sameSubtree === undefined ? { amounts, portions } : { amounts, portions, sameSubtree };
}

const noPortions: readonly Portion[] = [];

function gpuPortion({ count, share, models }: NonNullable<InstanceSpec['gpus']>): Portion {
  return {
    amounts: { [gpuClass]: share ?? gpuWhole },
    count: share === undefined ? count : 1,
    traitsAnyOf: (models ?? []).map(gpuModelTrait),
  };
}

/**
 * CPUs and memory in equal parts per cell, rounded up. Amounts that are not divisible were refused when the instance
 * was created.
 */
function takeCells(amounts: Record<string, number>, cells: number): Portion {
  const { VCPU = 0, MEMORY_MB = 0 } = amounts;
  delete amounts['VCPU'];
  delete amounts['MEMORY_MB'];
  return {
    amounts: { VCPU: Math.ceil(VCPU / cells), MEMORY_MB: Math.ceil(MEMORY_MB / cells) },
    count: cells,
    traitsAnyOf: [],
  };
}

/** A resource class that the query names is requested only as the query states. */
function takeQuery(amounts: Record<string, number>, { amounts: plain, groups, isolate }: ResourceQuery): Portion[] {
  for (const group of groups) for (const resourceClass in group.amounts) delete amounts[resourceClass];
  for (const resourceClass in plain) amounts[resourceClass] = plain[resourceClass] ?? 0;
  return groups.map(({ suffix, ...group }) => ({
    ...group,
    count: 1,
    traitsAnyOf: [],
    group: suffix,
    ...(isolate ? { apart: true } : {}),
  }));
}

const queries = new WeakMap<object, ResourceQuery | null>();

/** The instance's resource query, parsed once; null when it has none or the query is invalid. */
export function queryOf(placement: InstanceSpec['placement']): ResourceQuery | null {
  if (placement.query === undefined) return null;
  let query = queries.get(placement);
  if (query === undefined) {
    const parsed = parseResourceQuery(placement.query);
    query = parsed.ok ? parsed.query : null;
    queries.set(placement, query);
  }
  return query;
}
