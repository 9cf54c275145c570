import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { numaCells, pciGpus, processorTraits } from './devices.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-devices-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

async function put(path: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(join(directory, path), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, path, name), `${text}\n`);
}

it('cards that compute are whole GPUs, named by their place and marked by vendor and model', async () => {
  await put('0000:3b:00.0', { vendor: '0x10de', device: '0x20b0', class: '0x030200' });
  await put('0000:00:02.0', { vendor: '0x1234', device: '0x1111', class: '0x030000' }); // the screen
  await put('0000:01:00.0', { vendor: '0x10de', device: '0x1b80', class: '0x030000' }); // a VGA card
  await put('0000:c1:00.0', { vendor: '0x1002', device: '0x740f', class: '0x038000' });
  await put('0000:00:1f.3', { vendor: '0x8086', device: '0xa170', class: '0x040300' }); // sound
  expect(await pciGpus({ pci: directory })).toEqual([
    {
      name: 'gpu-0000-3b-00-0',
      amounts: { CUSTOM_GPU_MILLI: 1000 },
      traits: ['CUSTOM_GPU_NVIDIA', 'CUSTOM_GPU_10DE_20B0'],
    },
    {
      name: 'gpu-0000-c1-00-0',
      amounts: { CUSTOM_GPU_MILLI: 1000 },
      traits: ['CUSTOM_GPU_AMD', 'CUSTOM_GPU_1002_740F'],
    },
  ]);
});

it('cells have their processors and memory: 0-3,8-11 are eight; one without processors is none', async () => {
  await put('node1', { cpulist: '4-7,12', meminfo: 'Node 1 MemTotal:       4194304 kB' });
  await put('node0', { cpulist: '0-3,8-11', meminfo: 'Node 0 MemTotal:       8388608 kB\nNode 0 MemFree: 1 kB' });
  await put('node2', { cpulist: '', meminfo: 'Node 2 MemTotal:       1048576 kB' });
  expect(await numaCells({ nodes: directory })).toEqual([
    { name: 'cell0', amounts: { VCPU: 8, MEMORY_MB: 8192 }, traits: ['HW_NUMA_ROOT'] },
    { name: 'cell1', amounts: { VCPU: 5, MEMORY_MB: 4096 }, traits: ['HW_NUMA_ROOT'] },
  ]);
});

it('what the processor can do is told by the names that others use', async () => {
  await put('.', { cpuinfo: 'processor : 0\nflags : fpu avx2 constructor aes vmx\n\nprocessor : 1\nflags : avx' });
  expect(await processorTraits({ processors: join(directory, 'cpuinfo') })).toEqual([
    'HW_CPU_X86_AESNI',
    'HW_CPU_X86_AVX2',
    'HW_CPU_X86_VMX',
  ]);
});

it('a machine that has none of it tells of none', async () => {
  const nowhere = join(directory, 'nowhere');
  expect(await pciGpus({ pci: nowhere })).toEqual([]);
  expect(await numaCells({ nodes: nowhere })).toEqual([]);
  expect(await processorTraits({ processors: nowhere })).toEqual([]);
});
