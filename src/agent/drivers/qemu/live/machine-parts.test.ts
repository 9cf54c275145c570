import { describe, expect, it } from 'vitest';
import type { Qmp } from '../qmp.ts';
import { differences, type MachineParts, machineParts } from './machine-parts.ts';

const volumeId = `vol_${'1'.repeat(26)}`;
const mib = 1024 ** 2;
const card = device(3, 'net', 4096);

interface Said {
  readonly version?: readonly [number, number];
  readonly machine?: string;
  readonly cpus?: number;
  readonly cpu?: string;
  readonly kvm?: boolean;
  readonly memoryMiB?: number;
  readonly devices?: readonly object[];
  readonly disks?: Readonly<Record<string, number>>;
}

function device(slot: number, id: string, product: number): object {
  return { bus: 0, slot, function: 0, id: { vendor: 6900, device: product }, qdev_id: id };
}

/** As a QEMU says it. */
function said(change: Said = {}): Promise<MachineParts> {
  const { version = [7, 2], machine = 'pc-i440fx-7.2-machine', cpus = 1, cpu = 'max-x86_64-cpu' } = change;
  const { kvm = false, memoryMiB = 128, devices = [card], disks = { disk: 1024 * mib } } = change;
  const answers: Readonly<Record<string, unknown>> = {
    'query-version': { qemu: { major: version[0], minor: version[1], micro: 22 } },
    'query-cpus-fast': Array.from({ length: cpus }, () => ({ 'qom-path': '/cpu' })),
    'query-kvm': { enabled: kvm, present: true },
    'query-memory-size-summary': { 'base-memory': memoryMiB * mib },
    'query-pci': [{ bus: 0, devices }],
    'query-named-block-nodes': Object.entries(disks).map(([name, size]) => ({
      'node-name': name,
      image: { 'virtual-size': size },
    })),
  };
  const execute = async (command: string, { path }: { readonly path?: string } = {}): Promise<unknown> =>
    command === 'qom-get' ? (path === '/machine' ? machine : cpu) : answers[command];
  return machineParts({ execute } as unknown as Qmp, 'a uuid'); // nothing else of it is used
}

describe('the machines of both hosts of a live move', () => {
  it.each<[string, Said, RegExp]>([
    ['version of QEMU', { version: [8, 0] }, /QEMU 8.0.*QEMU 7.2/],
    ['machine type', { machine: 'pc-i440fx-6.1-machine' }, /pc-i440fx-6.1/],
    ['CPU model', { cpu: 'Nehalem-x86_64-cpu' }, /TCG, 1 x Nehalem/],
    ['number of CPUs', { cpus: 2 }, /TCG, 2 x max/],
    ['accelerator', { kvm: true }, /KVM, 1 x max.*TCG, 1 x max/],
    ['memory', { memoryMiB: 256 }, /it has 256 MiB of memory, this one 128/],
    ['place of a device', { devices: [device(4, 'net', 4096)] }, /device 0:4:0.*device 0:3:0/],
    ['kind of a device', { devices: [device(3, 'net', 4097)] }, /6900:4097/],
    ['device more', { devices: [card, device(4, 'rng', 4101)] }, /it has device 0:4:0/],
    ['device fewer', { devices: [] }, /this one has device 0:3:0/],
    ['size of the disk', { disks: { disk: 1 } }, /its disk has 1 bytes, here 1073741824/],
    ['volume', { disks: { disk: 1024 * mib, [volumeId]: mib } }, /its vol_1+ has 1048576 bytes, here there is none/],
  ])('differ in: %s', async (_what, change, expected) => {
    expect(differences(await said(), await said(change)).join('; ')).toMatch(expected);
  });

  it('differ in everything at once', async () => {
    const other = await said({ version: [8, 0], kvm: true, memoryMiB: 1, devices: [], disks: { disk: 1 } });
    expect(differences(await said(), other)).toHaveLength(7); // QEMU and accelerator on both sides, device, memory, disk
  });

  it('are equal in spite of patches of QEMU and of what is no disk of the guest', async () => {
    expect(differences(await said(), await said({ disks: { disk: 1024 * mib, seed: 1, 'move-1': 1 } }))).toEqual([]);
  });

  it('say where a volume is on the bus', async () => {
    const devices = [card, device(20, `dev-${volumeId}`, 4097)];
    const { disks } = await said({ devices, disks: { disk: mib, [volumeId]: mib } });
    expect(disks).toContainEqual({ name: volumeId, sizeBytes: mib, slot: 20 });
  });
});
