// Mix M: the fleet and the requests that the scheduler is measured with. Hosts with the shapes of a real inventory, 60 % full; 40 % plain
// requests, 20 % by labels, processor or taint, 15 % spread over zones, 15 % apart from each other, 10 % for GPUs. All from one seed.

import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import type { Prng } from '../src/base/prng.ts';
import { seededPrng } from '../src/base/prng.ts';
import type { Host } from '../src/api/resources/host.ts';
import type { Image } from '../src/api/resources/image.ts';
import type { Instance, InstanceSpec } from '../src/api/resources/instance.ts';
import type { Labels } from '../src/api/resources/metadata.ts';
import { testInstance } from '../src/core/testing.ts';
import type { AnyRecord, Inventory, Provider } from '../src/core/state/records.ts';

export type Part = 'plain' | 'selected' | 'spread' | 'apart' | 'gpu';

/** Of a hundred requests. */
export const mixM: Readonly<Record<Part, number>> = { plain: 40, selected: 20, spread: 15, apart: 15, gpu: 10 };
/** The half of M that asks where others are. */
export const mixAffinity: Readonly<Record<Part, number>> = { plain: 0, selected: 0, spread: 50, apart: 50, gpu: 0 };

interface HostShape {
  readonly cpus: number;
  readonly gpus: number;
  readonly model: string;
}

/** The six GPU models, sizes and shares of a real inventory of 4,278 hosts (Alibaba cluster-trace-v2026-spot-gpu), when the file is away. */
const shapesWithoutFile: readonly HostShape[] = [
  ...repeat(58, { cpus: 128, gpus: 1, model: 'A10' }),
  ...repeat(21, { cpus: 192, gpus: 1, model: 'GPU-series-1' }),
  ...repeat(10, { cpus: 128, gpus: 8, model: 'A100-SXM4-80GB' }),
  ...repeat(6, { cpus: 192, gpus: 8, model: 'H800' }),
  ...repeat(3, { cpus: 192, gpus: 8, model: 'GPU-series-2' }),
  ...repeat(2, { cpus: 192, gpus: 8, model: 'GPU-series-1' }),
];

function repeat(times: number, shape: HostShape): HostShape[] {
  return Array.from({ length: times }, () => shape);
}

function hostShapes(): readonly HostShape[] {
  const file = new URL('../../shared/traces/alibaba-gpu-nodes-2026/node_info_df.csv.gz', import.meta.url);
  if (!existsSync(file)) return shapesWithoutFile;
  const [, ...lines] = gunzipSync(readFileSync(file)).toString('utf8').trim().split('\n');
  return lines.map((line) => {
    const [model = '', gpus, cpus] = line.split(',');
    return { model, gpus: Number(gpus), cpus: Number(cpus) };
  });
}

/** CPUs and GiB: sixteen flavours, as many as the Azure trace has, so large that ten on a host fill it to about 60 %. */
const flavours: readonly (readonly [number, number])[] = [
  [1, 2],
  [1, 4],
  [2, 4],
  [2, 8],
  [2, 16],
  [4, 8],
  [4, 16],
  [4, 32],
  [8, 16],
  [8, 32],
  [8, 64],
  [16, 32],
  [16, 64],
  [16, 128],
  [24, 96],
  [32, 128],
];
const gibPerCpu = 6;

/** A host, its root provider and one child for each GPU. */
export function mixHosts(count: number): AnyRecord[][] {
  const prng = seededPrng(1, 'hosts');
  const shapes = hostShapes();
  return Array.from({ length: count }, (_, i) => {
    const shape = shapes[prng.below(shapes.length)] ?? { cpus: 128, gpus: 0, model: '' };
    const name = `h${String(i).padStart(6, '0')}`;
    const labels = {
      zone: `z${i % 3}`,
      rack: `r${Math.floor(i / 40)}`,
      disk: prng.chance(1, 2) ? 'ssd' : 'hdd',
      ...(shape.model === '' ? {} : { gpu: shape.model }),
    };
    const tainted = prng.chance(1, 10);
    return hostRecords(name, { labels, shape, tainted, architecture: prng.chance(1, 10) ? 'arm64' : 'amd64' });
  });
}

function hostRecords(
  name: string,
  parts: {
    readonly labels: Labels;
    readonly shape: HostShape;
    readonly tainted: boolean;
    readonly architecture: 'amd64' | 'arm64';
  },
): AnyRecord[] {
  const { labels, shape, tainted, architecture } = parts;
  const id = `host_${name.padStart(26, '0')}`;
  const capacity = { VCPU: shape.cpus, MEMORY_MB: shape.cpus * gibPerCpu * 1024, DISK_GB: 8000 };
  const host: Host = {
    kind: 'host',
    schemaVersion: 1,
    metadata: { id, name, project: '', revision: 0, generation: 1, labels, createdAtMs: 0 },
    spec: {
      paused: false,
      allocationRatios: {},
      ...(tainted ? { taints: [{ key: 'reserved', value: 'ci', effect: 'NoSchedule' as const }] } : {}),
    },
    status: {
      epoch: 1,
      session: 'bench',
      machineId: name,
      architecture,
      capacity,
      drivers: [{ name: 'fake', available: true }],
      images: [],
      unknownGuests: [],
      conditions: [{ type: 'Ready', status: 'True', reason: 'Registered', message: 'ready', sinceMs: 0 }],
    },
  };
  const root = provider(id, name, null, capacity, []);
  const gpus = Array.from({ length: shape.gpus }, (_, i) =>
    provider(`${id}-gpu${i}`, name, id, { CUSTOM_GPU_MILLI: 1000 }, [gpuTrait(shape.model)]),
  );
  return [host, root, ...gpus];
}

function gpuTrait(model: string): string {
  return `CUSTOM_GPU_${model.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
}

function provider(
  id: string,
  host: string,
  parent: string | null,
  capacity: Readonly<Record<string, number>>,
  traits: readonly string[],
): Provider {
  const inventories: Record<string, Inventory> = {};
  for (const [resourceClass, total] of Object.entries(capacity))
    inventories[resourceClass] = { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 };
  return { kind: 'provider', id, host, parent, generation: 1, inventories, traits, aggregates: [] };
}

export function mixImages(): Image[] {
  return (['amd64', 'arm64'] as const).map((architecture) => ({
    kind: 'image',
    schemaVersion: 1,
    metadata: {
      id: `img_${architecture}`,
      name: `bench-${architecture}`,
      project: '',
      revision: 0,
      generation: 1,
      labels: {},
      createdAtMs: 0,
    },
    spec: {
      source: 'file:///nowhere',
      decompress: 'none',
      format: 'qcow2',
      nocloud: true,
      architecture,
      aliases: [],
      preload: false,
      defaults: {},
    },
    status: {},
  }));
}

/** Draws instances that wait. Their groups have some fifteen members when the fleet holds `instances`. */
export function mixRequests(
  parts: Readonly<Record<Part, number>>,
  { instances, unique, seed }: { readonly instances: number; readonly unique: boolean; readonly seed: string },
): () => Instance {
  const prng = seededPrng(1, seed);
  const groups = Math.max(1, Math.floor((instances * 0.15) / 15));
  let number = 0;
  return () => {
    number += 1;
    const part = drawPart(parts, prng);
    const [cpus = 1, gib = 2] = flavours[prng.below(flavours.length)] ?? [];
    // A memory size that no other request has, so that no shape comes twice.
    const memoryMiB = gib * 1024 - (unique ? number % (gib * 512) : 0);
    const app = `${part}-${prng.below(groups)}`;
    const name = `bench-${seed}-${number}`;
    const id = `inst_${seed}${String(number).padStart(20, '0')}`;
    const labels: Labels = part === 'spread' || part === 'apart' ? { app } : {};
    return testInstance(
      name,
      { image: 'bench-amd64', cpus, memoryMiB, ...specOf(part, app, prng) },
      {},
      { id, labels },
    );
  };
}

function drawPart(parts: Readonly<Record<Part, number>>, prng: Prng): Part {
  let draw = prng.below(100);
  for (const [part, share] of Object.entries(parts)) {
    draw -= share;
    if (draw < 0 && isPart(part)) return part;
  }
  return 'plain';
}

function isPart(name: string): name is Part {
  return Object.hasOwn(mixM, name);
}

function specOf(part: Part, app: string, prng: Prng): Partial<InstanceSpec> {
  switch (part) {
    case 'plain':
      return {};
    case 'selected':
      switch (prng.below(4)) {
        case 0:
          return { placement: { hostLabels: { disk: 'ssd' } } };
        case 1:
          return { placement: { hostRules: [{ key: 'zone', operator: 'In', values: ['z0', 'z1'] }] } };
        case 2:
          return { placement: { tolerations: [{ key: 'reserved', value: 'ci' }] } };
        default:
          return { image: 'bench-arm64', cpus: 2, memoryMiB: 4096 };
      }
    case 'spread':
      return { placement: { spread: [{ by: 'zone', maxSkew: 1, required: true }] } };
    case 'apart':
      return {
        placement: prng.chance(1, 2)
          ? { antiAffinity: [{ to: { app }, by: 'host', required: true }] }
          : { maxPerHost: 2 },
      };
    case 'gpu':
      return prng.chance(1, 2)
        ? { cpus: 8, memoryMiB: 32_768, gpus: { count: 1 } }
        : { cpus: 4, memoryMiB: 16_384, gpus: { count: 1, share: 250 + 250 * prng.below(2) } };
  }
}
