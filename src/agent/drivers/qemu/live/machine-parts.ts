// The parts of a machine as QEMU reports them, as texts that must be equal on both hosts of a live move. QEMU detects some differences when a
// guest arrives; with others the guest resumes and fails later.

import type { LiveMachine } from '../../../../api/agent-protocol.ts';
import { isRecord } from '../../../../base/is-record.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { volumeIdPattern } from '../../../volumes/files/volume-files.ts';
import type { Qmp } from '../qmp.ts';
import { deviceId } from '../volume-devices.ts';

export type MachineParts = Pick<LiveMachine, 'parts' | 'disks' | 'memoryMiB'>;

const mebibyte = 1024 ** 2;

export async function machineParts(session: Qmp, uuid: string): Promise<MachineParts> {
  const version = fieldsOf(fieldsOf(await session.execute('query-version'))['qemu']);
  const type = await session.execute('qom-get', { path: '/machine', property: 'type' });
  const cpus = listOf(await session.execute('query-cpus-fast'));
  const cpu = await session.execute('qom-get', { path: String(cpus[0]?.['qom-path']), property: 'type' });
  const kvm = fieldsOf(await session.execute('query-kvm'))['enabled'] === true;
  const memory = Number(fieldsOf(await session.execute('query-memory-size-summary'))['base-memory']);
  const nodes = listOf(await session.execute('query-named-block-nodes', { flat: true }));
  const devices = listOf(await session.execute('query-pci')).flatMap((bus) => listOf(bus['devices']));
  const slots = new Map(devices.map((device) => [device['qdev_id'], Number(device['slot'])]));
  return {
    parts: [
      `QEMU ${wordsOf(version, 'major', 'minor').join('.')}`,
      `uuid ${uuid}`,
      `machine ${String(type)}`,
      `${kvm ? 'KVM' : 'TCG'}, ${cpus.length} x ${String(cpu)}`,
      ...devices.flatMap(devicesOf),
    ],
    disks: nodes.flatMap((node) => {
      const name = String(node['node-name']);
      if (name !== 'disk' && !volumeIdPattern.test(name)) return [];
      const image = fieldsOf(node['image']);
      if (listOf(image['snapshots']).length > 0)
        throw new DriverError('NotPossible', `${name} has snapshots, which a running guest cannot take along`);
      const slot = slots.get(deviceId(name));
      return [{ name, sizeBytes: Number(image['virtual-size']), ...(slot === undefined ? {} : { slot }) }];
    }),
    memoryMiB: Math.round(memory / mebibyte),
  };
}

/** The bus address of each volume. */
export async function volumeAddresses(session: Qmp): Promise<ReadonlyMap<string, number>> {
  const nodes = listOf(await session.execute('query-named-block-nodes', { flat: true }));
  const devices = listOf(await session.execute('query-pci')).flatMap((bus) => listOf(bus['devices']));
  const slots = new Map(devices.map((device) => [device['qdev_id'], Number(device['slot'])]));
  return new Map(
    nodes.flatMap((node) => {
      const name = String(node['node-name']);
      const slot = volumeIdPattern.test(name) ? slots.get(deviceId(name)) : undefined;
      return slot === undefined ? [] : [[name, slot] as const];
    }),
  );
}

/** As text; empty: none. */
export function differences(here: MachineParts, there: MachineParts): string[] {
  const missing = there.parts
    .filter((part) => !here.parts.includes(part))
    .map((part) => `it has ${part}, this one not`);
  const more = here.parts.filter((part) => !there.parts.includes(part)).map((part) => `this one has ${part}`);
  const memory =
    here.memoryMiB === there.memoryMiB ? [] : [`it has ${there.memoryMiB} MiB of memory, this one ${here.memoryMiB}`];
  const disks = there.disks.flatMap(({ name, sizeBytes }) => {
    const own = here.disks.find((each) => each.name === name)?.sizeBytes;
    return own === sizeBytes ? [] : [`its ${name} has ${sizeBytes} bytes, here ${own ?? 'there is none'}`];
  });
  return [...missing, ...more, ...memory, ...disks];
}

/** A device of the PCI bus, and those behind it. */
function devicesOf(device: Fields): string[] {
  const behind = listOf(fieldsOf(device['pci_bridge'])['devices']).flatMap(devicesOf);
  const words = [...wordsOf(device, 'bus', 'slot', 'function'), ...wordsOf(fieldsOf(device['id']), 'vendor', 'device')];
  return [`device ${words.join(':')} ${wordsOf(device, 'qdev_id').join('')}`.trimEnd(), ...behind];
}

type Fields = Readonly<Record<string, unknown>>;

const wordsOf = (fields: Fields, ...names: readonly string[]): string[] => names.map((name) => String(fields[name]));
const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {});
const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? value.filter(isRecord) : []);
