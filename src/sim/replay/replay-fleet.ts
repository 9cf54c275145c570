// The fleet of a replay: as many hosts of one shape as are needed, a number of them, or a recorded list of hosts.

import { type FleetHost, readFleet } from './fleet.ts';

/** What one host has; undefined when it is not stated: then it is never too little. */
export interface HostShape {
  readonly cpuMilli: number;
  readonly memoryMiB: number | undefined;
  readonly diskMiB: number | undefined;
  /** 100 for one network card. */
  readonly networkPercent: number | undefined;
  readonly gpus: number;
  /** '' where no model is told: then any model that is asked for will do. */
  readonly gpuModel: string;
}

export interface ReplayFleet {
  /** In order of their names; none for a fleet that grows. */
  readonly hosts: readonly { readonly name: string; readonly shape: HostShape }[];
  /** Hosts of this shape are added as they are needed; null for a fleet that is as it is. */
  readonly growsBy: HostShape | null;
  /** The shape of all hosts, if they are of one. */
  readonly uniform: HostShape | null;
}

const form = 'CPUxMEMORY, COUNTxCPUxMEMORY, either with xGPUS[:MODEL] and ,disk=2TiB ,network=200';
const fleetPattern =
  /^(?:(?<count>\d+)x)?(?<cpus>\d+(?:\.\d+)?)x(?<memory>\d+(?:\.\d+)?(?:MiB|GiB|TiB))(?:x(?<gpus>\d+)(?::(?<model>[\w-]+))?)?(?<rest>(?:,[a-z]+=[^,]*)*)$/;
const mebiPerUnit: Readonly<Record<string, number>> = { MiB: 1, GiB: 1024, TiB: 1024 * 1024 };
const hostsMax = 1_000_000;
const gpusMax = 128;

/** Whether the text is meant as a shape of hosts, not as a file. */
export function isFleetShape(text: string): boolean {
  return /^\d+(\.\d+)?x/.test(text);
}

/** `64x128GiB`: as many as needed; `100x64x128GiBx8:A100`: a hundred, with GPUs. */
export function parseFleetShape(text: string): ReplayFleet {
  const match = fleetPattern.exec(text)?.groups;
  if (!match)
    throw new Error(
      `"${text}" is not a fleet: it is a file with a list of hosts, or ${form}; memory has MiB, GiB or TiB`,
    );
  const { count, cpus = '', memory = '', gpus = '0', model = '', rest = '' } = match;
  const extra = restOf(text, rest);
  const shape: HostShape = {
    cpuMilli: Math.round(1000 * Number(cpus)),
    memoryMiB: mebiOf(text, memory),
    diskMiB: extra.disk === undefined ? undefined : mebiOf(text, extra.disk),
    networkPercent: extra.network === undefined ? undefined : percentOf(text, extra.network),
    gpus: Number(gpus),
    gpuModel: model,
  };
  if (shape.cpuMilli === 0) throw new Error(`"${text}" is not a fleet: a host has at least one CPU`);
  if (shape.gpus > gpusMax) throw new Error(`"${text}" is not a fleet: a host has at most ${gpusMax} GPUs`);
  if (count === undefined) return { hosts: [], growsBy: shape, uniform: shape };
  if (Number(count) < 1 || Number(count) > hostsMax)
    throw new Error(`"${text}" is not a fleet: there are 1 to ${hostsMax} hosts`);
  const hosts = Array.from({ length: Number(count) }, (_, i) => ({ name: hostName(i), shape }));
  return { hosts, growsBy: null, uniform: shape };
}

/** From a recorded list of hosts; `source` is what messages call the file. */
export function fleetFromList(packed: Uint8Array, source: string): ReplayFleet {
  const list = readFleet(packed, source);
  if (list.length === 0) throw new Error(`cannot replay on ${source}: it names no host`);
  const hosts = list
    .map((host) => ({ name: host.name, shape: shapeOf(host) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const [first] = hosts;
  const same = hosts.every(({ shape }) => JSON.stringify(shape) === JSON.stringify(first?.shape));
  return { hosts, growsBy: null, uniform: same ? (first?.shape ?? null) : null };
}

/** Names in the order of numbers. */
export function hostName(number: number): string {
  return `host-${String(number).padStart(7, '0')}`;
}

function shapeOf({ cpuMilli, memoryMiB, gpus, gpuModel }: FleetHost): HostShape {
  return { cpuMilli, memoryMiB, diskMiB: undefined, networkPercent: undefined, gpus, gpuModel };
}

function restOf(text: string, rest: string): { readonly disk?: string; readonly network?: string } {
  const found: { disk?: string; network?: string } = {};
  for (const pair of rest.split(',').slice(1)) {
    const [name, value = ''] = pair.split('=');
    if (name === 'disk' || name === 'network') found[name] = value;
    else throw new Error(`"${text}" is not a fleet: "${name}" is unknown; known are disk and network`);
  }
  return found;
}

function mebiOf(text: string, amount: string): number {
  const match = /^(\d+(?:\.\d+)?)(MiB|GiB|TiB)$/.exec(amount);
  const mebi = Number(match?.[1]) * (mebiPerUnit[match?.[2] ?? ''] ?? Number.NaN);
  if (!Number.isFinite(mebi)) throw new Error(`"${text}" is not a fleet: "${amount}" has no MiB, GiB or TiB`);
  return Math.round(mebi);
}

function percentOf(text: string, amount: string): number {
  const percent = Number(amount);
  if (!Number.isInteger(percent) || percent < 1)
    throw new Error(`"${text}" is not a fleet: network is percent of one card, a whole number, and not "${amount}"`);
  return percent;
}
