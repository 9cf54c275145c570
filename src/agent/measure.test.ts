import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { measure, reservedOf } from './measure.ts';

describe('measuring a host', () => {
  let directory: string;
  let drawn: number;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-measure-'));
    drawn = 0;
  });
  afterEach(() => rm(directory, { recursive: true }));

  const take = (change: Partial<Parameters<typeof measure>[0]> = {}) =>
    measure({
      dataDirectory: directory,
      processArchitecture: 'x64',
      randomSecret: (length) => new Uint8Array(length).fill(++drawn),
      ...change,
    });
  const file = async (name: string, text: string): Promise<string> => {
    const path = join(directory, name);
    await writeFile(path, text);
    return path;
  };

  it('finds processors, memory, disk and a boot id on this machine', async () => {
    const { capacity, bootId, architecture } = await take();
    expect(capacity['VCPU']).toBeGreaterThan(0);
    expect(capacity['MEMORY_MB']).toBeGreaterThan(100);
    expect(capacity['DISK_GB']).toBeGreaterThan(0);
    expect(bootId).toMatch(/^[0-9a-f-]{36}$/);
    expect(architecture).toBe('amd64');
  });

  it('gives CPUs and memory by cell when told so, and devices as they are stated', async () => {
    await mkdir(join(directory, 'node0'));
    await file('node0/cpulist', '0-2\n');
    await file('node0/meminfo', 'Node 0 MemTotal: 2048000 kB\n');
    const stated = { name: 'fpga0', amounts: { CUSTOM_FPGA: 1 }, traits: [] };
    const systemPaths = { nodes: directory, processors: await file('cpuinfo', 'flags : avx\n') };
    const options = { numaCells: true, devices: [stated], traits: ['CUSTOM_FAST'], systemPaths };
    const { capacity, providers, traits } = await take(options);
    expect(capacity).toMatchObject({ VCPU: 3, MEMORY_MB: 2000 });
    expect(providers?.map(({ name }) => name)).toEqual(['fpga0', 'cell0']);
    expect(traits).toEqual(['HW_CPU_X86_AVX', 'CUSTOM_FAST']);
    expect((await take({ ...options, numaCells: false })).providers).toEqual([stated]);
  });

  it('rounds memory down to whole MiB', async () => {
    const memoryInfoPath = await file('meminfo', 'MemTotal:        2049000 kB\nMemFree: 1 kB\n');
    expect((await take({ memoryInfoPath })).capacity['MEMORY_MB']).toBe(2000); // 2049000 / 1024 = 2000.98
  });

  it('takes what the operator states over what it measures', async () => {
    const { capacity, reserved } = await take({ capacity: { VCPU: 64, CUSTOM_FPGA: 2 }, reserved: { MEMORY_MB: 1 } });
    expect(capacity).toMatchObject({ VCPU: 64, CUSTOM_FPGA: 2 });
    expect(reserved['MEMORY_MB']).toBe(1);
  });

  it.each([
    ['a small host', { MEMORY_MB: 2048, DISK_GB: 10 }, { VCPU: 0, MEMORY_MB: 512, DISK_GB: 1 }],
    ['a large host', { MEMORY_MB: 100_000, DISK_GB: 2000 }, { VCPU: 0, MEMORY_MB: 5000, DISK_GB: 100 }],
    ['a host smaller than the least', { MEMORY_MB: 256, DISK_GB: 0 }, { VCPU: 0, MEMORY_MB: 256, DISK_GB: 0 }],
  ])('keeps back a share for %s', (_, capacity, reserved) => expect(reservedOf(capacity)).toEqual(reserved));

  it('never shows the id that the system has', async () => {
    const systems = '0123456789abcdef0123456789abcdef';
    const machineIdPath = await file('system-id', `${systems}\n`);
    const { machineId } = await take({ machineIdPath });
    expect(machineId).toMatch(/^[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}$/);
    expect(machineId).not.toBe(systems);
    expect((await take({ machineIdPath })).machineId).toBe(machineId);
  });

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['uninitialized', 'uninitialized\n'],
    ['zero', '0'.repeat(32)],
  ])('makes an id and keeps it where the one of the system is %s', async (name, text) => {
    const machineIdPath = text === undefined ? join(directory, 'none') : await file(name, text);
    const { machineId } = await take({ machineIdPath });
    expect((await take({ machineIdPath })).machineId).toBe(machineId);
    expect(drawn).toBe(1);
    expect(await readFile(join(directory, 'machine-id'), 'utf8')).toMatch(/^[0-9a-f]{32}\n$/);
  });
});
