// Measures this machine: what it has, what is kept back for the host itself, and which machine it is. Reads only, but for a
// machine id of its own where the system has none.

import { readFile, stat, statfs, writeFile } from 'node:fs/promises';
import { availableParallelism, networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { ChildProvider } from '../api/resources/host-rules.ts';
import type { Amounts } from '../api/resources/metadata.ts';
import { appMachineId, rawMachineId, systemMachineId } from '../base/system.ts';
import type { Measurement } from './session/agent-options.ts';
import { numaCells, pciGpus, processorTraits, type SystemPaths } from './host/devices.ts';

export interface MeasureOptions {
  /** Guests' disks live here: its filesystem is what DISK_GB means. Must exist. */
  readonly dataDirectory: string;
  /** Node's word for the processor: x64, arm64. */
  readonly processArchitecture: string;
  readonly randomSecret: (length: number) => Uint8Array;
  /** What the operator states instead of what is measured; also where CUSTOM_* come from. */
  readonly capacity?: Amounts;
  readonly reserved?: Amounts;
  /** Default: the first address of the machine. */
  readonly address?: string;
  /** What the operator states to have room of its own, and whether GPUs and NUMA cells are looked for. */
  readonly devices?: readonly ChildProvider[];
  readonly pciGpus?: boolean;
  readonly numaCells?: boolean;
  readonly traits?: readonly string[];
  readonly systemPaths?: SystemPaths;
  /** 32 hexadecimal digits, instead of those of the system. */
  readonly machineId?: string;
  /** Default: those of Linux. */
  readonly memoryInfoPath?: string;
  readonly machineIdPath?: string;
  readonly bootIdPath?: string;
}

export async function measure(options: MeasureOptions): Promise<Measurement> {
  const [memoryMiB, diskGiB, diskId, machineId, bootId] = await Promise.all([
    memoryMiBOf(options.memoryInfoPath ?? '/proc/meminfo'),
    diskGiBOf(options.dataDirectory),
    diskIdOf(options.dataDirectory),
    machineIdOf(options),
    readFile(options.bootIdPath ?? '/proc/sys/kernel/random/boot_id', 'utf8'),
  ]);
  const [gpus, cells, processor] = await Promise.all([
    options.pciGpus ? pciGpus(options.systemPaths) : [],
    options.numaCells ? numaCells(options.systemPaths) : [],
    processorTraits(options.systemPaths),
  ]);
  const measured = { VCPU: availableParallelism(), MEMORY_MB: memoryMiB, DISK_GB: diskGiB, ...sumOf(cells) };
  const capacity = { ...measured, ...options.capacity };
  const found = new Set([...Object.keys(measured), ...gpus.flatMap(({ amounts }) => Object.keys(amounts))]);
  const address = options.address ?? firstAddress();
  const stated = options.devices ?? [];
  const providers = [
    ...stated,
    ...[...gpus, ...cells].filter((part) => !stated.some(({ name }) => name === part.name)),
  ];
  return {
    machineId,
    bootId: bootId.trim(),
    ...(address === undefined ? {} : { address }),
    architecture: architectureOf(options.processArchitecture),
    capacity,
    reserved: { ...reservedOf(capacity), ...options.reserved },
    measured: [...found].filter((each) => options.capacity?.[each] === undefined),
    diskId,
    traits: [...new Set([...processor, ...(options.traits ?? [])])],
    providers,
  };
}

/** IPv4 before IPv6, and none that only this machine or its link reaches. */
export function firstAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces())
    .flatMap((found) => found ?? [])
    .filter(({ internal, address }) => !internal && !/^(169\.254\.|fe80:)/i.test(address));
  return (addresses.find(({ family }) => family === 'IPv4') ?? addresses[0])?.address;
}

/** What the cells have together is what the host has: they leave nothing over. */
function sumOf(cells: readonly ChildProvider[]): Amounts {
  const sum: Record<string, number> = {};
  for (const { amounts } of cells) {
    for (const resourceClass in amounts) sum[resourceClass] = (sum[resourceClass] ?? 0) + (amounts[resourceClass] ?? 0);
  }
  return sum;
}

/**
 * What a host keeps for itself, unless its operator says otherwise: no processor (the scheduler of the kernel shares those),
 * the larger of 512 MiB and 5 % of memory (kernel, agent, page tables), the larger of 1 GiB and 5 % of disk (logs, and the room
 * that filesystems need to stay quick). Never more than there is.
 */
export function reservedOf({ MEMORY_MB = 0, DISK_GB = 0 }: Amounts): Amounts {
  return {
    VCPU: 0,
    MEMORY_MB: Math.min(MEMORY_MB, Math.max(512, Math.ceil(MEMORY_MB * 0.05))),
    DISK_GB: Math.min(DISK_GB, Math.max(1, Math.ceil(DISK_GB * 0.05))),
  };
}

async function memoryMiBOf(path: string): Promise<number> {
  const kibibytes = Number(/^MemTotal:\s+(\d+) kB$/m.exec(await readFile(path, 'utf8'))?.[1]);
  if (!Number.isSafeInteger(kibibytes))
    throw new Error(`cannot measure the memory of this host: ${path} has no MemTotal`);
  return Math.floor(kibibytes / 1024);
}

async function diskGiBOf(directory: string): Promise<number> {
  const { blocks, bsize } = await statfs(directory);
  return Math.floor((blocks * bsize) / 1024 ** 3);
}

async function diskIdOf(directory: string): Promise<string> {
  return String((await stat(directory)).dev);
}

function architectureOf(processArchitecture: string): Measurement['architecture'] {
  if (processArchitecture === 'x64') return 'amd64';
  if (processArchitecture === 'arm64') return 'arm64';
  throw new Error(`cannot run guests on a host of architecture "${processArchitecture}"; amd64 and arm64 are known`);
}

async function machineIdOf({ dataDirectory, randomSecret, machineId, machineIdPath }: MeasureOptions): Promise<string> {
  if (machineId !== undefined) return appMachineId(machineId);
  return (
    (await systemMachineId(machineIdPath)) ??
    appMachineId(await ownMachineId(join(dataDirectory, 'machine-id'), randomSecret))
  );
}

async function ownMachineId(path: string, randomSecret: MeasureOptions['randomSecret']): Promise<string> {
  const kept = await rawMachineId(path);
  if (kept !== undefined) return kept;
  const made = Buffer.from(randomSecret(16)).toString('hex');
  await writeFile(path, `${made}\n`, { mode: 0o600, flush: true });
  return made;
}
