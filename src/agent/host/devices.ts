// Measures what of this machine has room of its own: GPUs on the PCI bus and NUMA cells; and what its processor can do. Reads only.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type ChildProvider, gpuClass, gpuModelTrait, gpuWhole } from '../../api/resources/host-rules.ts';

export interface SystemPaths {
  readonly pci?: string;
  readonly nodes?: string;
  readonly processors?: string;
}

const vendors: Readonly<Record<string, string>> = { '0x10de': 'NVIDIA', '0x1002': 'AMD', '0x8086': 'INTEL' };
/** 3D and other display controllers, and processing accelerators: what computes. A VGA controller is the host's own screen. */
const computeClass = /^0x(0302|0380|1200)/;

/** One provider of a whole GPU for each card that computes, with the traits CUSTOM_GPU_<vendor> and CUSTOM_GPU_<vendor id>_<device id>. */
export async function pciGpus({ pci = '/sys/bus/pci/devices' }: SystemPaths = {}): Promise<ChildProvider[]> {
  const found: ChildProvider[] = [];
  for (const address of (await entriesOf(pci)).sort()) {
    const read = async (name: string): Promise<string> => (await textOf(join(pci, address, name))).trim();
    const vendor = vendors[await read('vendor')];
    if (vendor === undefined || !computeClass.test(await read('class'))) continue;
    const model = `${(await read('vendor')).slice(2)}:${(await read('device')).slice(2)}`;
    found.push({
      name: `gpu-${address.replaceAll(/[^0-9a-f]/g, '-')}`,
      amounts: { [gpuClass]: gpuWhole },
      traits: [gpuModelTrait(vendor), gpuModelTrait(model)],
    });
  }
  return found;
}

/** One provider for each NUMA cell that has processors, with its CPUs and memory. */
export async function numaCells({ nodes = '/sys/devices/system/node' }: SystemPaths = {}): Promise<ChildProvider[]> {
  const cells: ChildProvider[] = [];
  const numbers = (await entriesOf(nodes)).flatMap((name) => /^node(\d{1,4})$/.exec(name)?.[1] ?? []);
  for (const number of numbers.sort((a, b) => Number(a) - Number(b))) {
    const cpus = countOf((await textOf(join(nodes, `node${number}`, 'cpulist'))).trim());
    const memory = await textOf(join(nodes, `node${number}`, 'meminfo'));
    const kibibytes = Number(/MemTotal:\s+(\d+) kB/.exec(memory)?.[1] ?? 0);
    if (cpus === 0) continue; // memory that no processor is near to
    cells.push({
      name: `cell${number}`,
      amounts: { VCPU: cpus, MEMORY_MB: Math.floor(kibibytes / 1024) },
      traits: ['HW_NUMA_ROOT'],
    });
  }
  return cells;
}

/** `0-3,8-11` → 8. */
function countOf(list: string): number {
  let count = 0;
  for (const part of list.split(',')) {
    const [, first, last] = /^(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (first !== undefined) count += Number(last ?? first) - Number(first) + 1;
  }
  return count;
}

/** Names of os-traits (docs.openstack.org/os-traits) for flags of /proc/cpuinfo. */
const traitByFlag: Readonly<Record<string, string>> = {
  sse4_2: 'HW_CPU_X86_SSE42',
  aes: 'HW_CPU_X86_AESNI',
  avx: 'HW_CPU_X86_AVX',
  avx2: 'HW_CPU_X86_AVX2',
  avx512f: 'HW_CPU_X86_AVX512F',
  amx_tile: 'HW_CPU_X86_AMXTILE',
  sgx: 'HW_CPU_X86_SGX',
  vmx: 'HW_CPU_X86_VMX',
  svm: 'HW_CPU_X86_SVM',
};

/** What the processor can do, as traits. */
export async function processorTraits({ processors = '/proc/cpuinfo' }: SystemPaths = {}): Promise<string[]> {
  const flags = /^flags\s*:(.*)$/m.exec(await textOf(processors))?.[1] ?? '';
  return flags
    .split(/\s+/)
    .flatMap((flag) => (Object.hasOwn(traitByFlag, flag) ? (traitByFlag[flag] ?? []) : []))
    .sort();
}

/** A machine without the bus, or without cells, has no such directory. */
async function entriesOf(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return '';
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
