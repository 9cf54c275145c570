// What the rows of a trace ask for, in the scheduler's words. Rows that ask alike share one request, so that a million rows are cheap.

import { gpuModelTrait } from '../../api/resources/host-rules.ts';
import type { Instance } from '../../api/resources/instance.ts';
import type { ProfileName } from '../../core/scheduler/profiles.ts';
import { type Request, requestOf } from '../../core/scheduler/request.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import { diskClass, instanceRecord, networkClass } from './replay-cluster.ts';
import type { HostShape, ReplayFleet } from './replay-fleet.ts';
import type { Trace } from './trace.ts';

export interface Asked {
  /** Which of `shapes`: what it asks for of each class (`amountsOf`). */
  readonly shape: number;
  /** Equal for rows that share a request. */
  readonly number: number;
  readonly request: Request;
  readonly spec: Pick<Instance['spec'], 'placement'> & Partial<Instance['spec']>;
  readonly labels: Record<string, string>;
  readonly group: number;
  /** 0: no limit. */
  readonly maxPerHost: number;
  /** Of CPU, memory, disk, network, GPUs in thousandths. */
  readonly amounts: readonly number[];
  /** Whether it has GPUs, or a share of one. */
  readonly gpus: number;
  /** A share of a GPU. */
  readonly shared: boolean;
  /** Some host is large enough for it, when nothing else is there. */
  readonly possible: boolean;
}

/** What a host has of what rows ask for; 0: it does not count, or is not stated. */
export function capacityOf({ cpuMilli, memoryMiB, diskMiB, networkPercent, gpus }: HostShape): readonly number[] {
  return [cpuMilli, memoryMiB ?? 0, diskMiB ?? 0, networkPercent ?? 0, 1000 * gpus];
}

export class TraceRequests {
  /** What is asked for of each class, once each. */
  readonly shapes: (readonly number[])[] = [];
  readonly #trace: Trace;
  readonly #snapshot: Snapshot;
  readonly #profile: ProfileName;
  readonly #hostShapes: readonly HostShape[];
  readonly #modelsTold: boolean;
  readonly #disks: boolean;
  readonly #network: boolean;
  readonly #asked = new Map<string, Asked>();
  readonly #shapeNumbers = new Map<string, number>();

  constructor(trace: Trace, fleet: ReplayFleet, snapshot: Snapshot, profile: ProfileName) {
    this.#trace = trace;
    this.#snapshot = snapshot;
    this.#profile = profile;
    this.#hostShapes = distinct(fleet);
    this.#modelsTold = this.#hostShapes.some(({ gpuModel }) => gpuModel !== '');
    this.#disks = this.#hostShapes.some(({ diskMiB }) => diskMiB !== undefined);
    this.#network = this.#hostShapes.some(({ networkPercent }) => networkPercent !== undefined);
  }

  of(row: number): Asked {
    const trace = this.#trace;
    const maxPerHost = trace.maxPerHost[row] ?? 0;
    const group = maxPerHost > 0 ? (trace.group.of[row] ?? 0) : -1;
    const key = `${trace.cpuMilli[row]},${trace.memoryMiB[row]},${trace.diskMiB[row]},${trace.networkPercent[row]},${trace.gpus[row]},${trace.gpuMilli[row]},${trace.gpuSpec.of[row]},${group},${maxPerHost}`;
    let asked = this.#asked.get(key);
    if (!asked) this.#asked.set(key, (asked = this.#make(row, { group, maxPerHost })));
    return asked;
  }

  #make(row: number, { group, maxPerHost }: { group: number; maxPerHost: number }): Asked {
    const trace = this.#trace;
    const cpuMilli = trace.cpuMilli[row] ?? 0;
    const memoryMiB = trace.memoryMiB[row] ?? 0;
    const disk = this.#disks ? (trace.diskMiB[row] ?? 0) : 0;
    const network = this.#network ? (trace.networkPercent[row] ?? 0) : 0;
    const gpus = trace.gpus[row] ?? 0;
    // With one GPU only; 0 thousandths are of no use.
    const share = gpus === 1 ? (trace.gpuMilli[row] ?? 0) : 0;
    const shared = share > 0 && share < 1000;
    const specText = trace.gpuSpec.names[trace.gpuSpec.of[row] ?? 0] ?? '';
    const models = specText === '' || !this.#modelsTold ? [] : specText.split('|');
    const amounts = [cpuMilli, memoryMiB, disk, network, gpus * (shared ? share : 1000)];
    const spec = {
      cpus: cpuMilli,
      memoryMiB,
      resources: { ...(disk > 0 ? { [diskClass]: disk } : {}), ...(network > 0 ? { [networkClass]: network } : {}) },
      ...(gpus === 0
        ? {}
        : { gpus: { count: gpus, ...(shared ? { share } : {}), ...(models.length > 0 ? { models } : {}) } }),
      placement: { profile: this.#profile, ...(maxPerHost > 0 ? { maxPerHost } : {}) },
      ports: [],
    };
    const labels: Record<string, string> = group < 0 ? {} : { group: trace.group.names[group] ?? '' };
    const possible = this.#hostShapes.some((shape) => isLargeEnough(shape, amounts, gpus, models));
    return {
      shape: this.#shapeOf(amounts),
      number: this.#asked.size,
      request: requestOf(this.#snapshot, { metadata: { project: 'trace', labels }, spec }),
      spec,
      labels,
      group,
      maxPerHost,
      amounts,
      gpus,
      shared,
      possible,
    };
  }

  #shapeOf(amounts: readonly number[]): number {
    const key = amounts.join();
    const known = this.#shapeNumbers.get(key);
    if (known !== undefined) return known;
    this.#shapeNumbers.set(key, this.shapes.length);
    return this.shapes.push(amounts) - 1;
  }
}

export function recordOf(name: string, { spec, labels }: Asked): Instance {
  return instanceRecord(name, spec, labels);
}

function distinct({ hosts, growsBy }: ReplayFleet): readonly HostShape[] {
  const shapes = new Map<string, HostShape>();
  if (growsBy) shapes.set('', growsBy);
  for (const { shape } of hosts) shapes.set(JSON.stringify(shape), shape);
  return [...shapes.values()];
}

function isLargeEnough(shape: HostShape, amounts: readonly number[], gpus: number, models: readonly string[]): boolean {
  if (gpus > shape.gpus) return false;
  if (models.length > 0 && !models.some((model) => gpuModelTrait(model) === gpuModelTrait(shape.gpuModel)))
    return false;
  const [cpuMilli = 0, memoryMiB = 0, diskMiB = 0, networkPercent = 0] = amounts;
  return (
    cpuMilli <= shape.cpuMilli &&
    memoryMiB <= (shape.memoryMiB ?? Number.POSITIVE_INFINITY) &&
    diskMiB <= (shape.diskMiB ?? Number.POSITIVE_INFINITY) &&
    networkPercent <= (shape.networkPercent ?? Number.POSITIVE_INFINITY)
  );
}
