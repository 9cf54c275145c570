// QEMU's arguments for one guest: pure. All paths are relative to the guest's directory, where QEMU runs, so nothing a
// path may hold (spaces, commas, 108 bytes of socket path) can be misread.

import { createHash } from 'node:crypto';
import type { Accelerator, GuestPort } from '../../../api/agent-protocol.ts';

export const guestFiles = {
  disk: 'disk.qcow2',
  seed: 'seed.iso',
  console: 'console.log',
  stderr: 'qemu.stderr',
  pid: 'qemu.pid',
  qmp: 'qmp.sock',
} as const;

export interface GuestMachine {
  readonly instanceId: string;
  readonly uuid: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly seeded: boolean;
  readonly ports: readonly GuestPort[];
}

export function qemuArguments(
  machine: GuestMachine,
  host: { readonly accelerator: Accelerator; readonly bindAddress: string },
): string[] {
  const forwards = machine.ports.map(
    (port) => `,hostfwd=${port.protocol}:${host.bindAddress}:${port.hostPort}-:${port.guestPort}`,
  );
  return [
    ...['-nodefaults', '-no-user-config'],
    ...['-name', `guest=${machine.instanceId}`, '-uuid', machine.uuid],
    ...['-pidfile', guestFiles.pid],
    ...sandbox,
    ...['-machine', 'pc,hpet=off', ...acceleratorArguments(host.accelerator)],
    ...['-smp', `cpus=${machine.cpus},sockets=1`, '-m', `size=${machine.memoryMiB}M`],
    ...['-display', 'none', '-rtc', 'base=utc', '-boot', 'strict=on'],
    // A guest that powers off or panics leaves a paused QEMU behind: so an agent that was away still learns why it ended.
    ...['-action', 'shutdown=pause,panic=pause'],
    ...['-chardev', `socket,id=qmp,path=${guestFiles.qmp},server=on,wait=off`, '-mon', 'chardev=qmp,mode=control'],
    ...['-chardev', `file,id=console,path=${guestFiles.console},append=on`, '-serial', 'chardev:console'],
    ...disk,
    ...(machine.seeded ? seed : []),
    ...['-netdev', `user,id=net0${forwards.join('')}`],
    ...['-device', `virtio-net-pci,netdev=net0,mac=${macAddress(machine.uuid)},romfile=`],
    ...['-object', 'rng-random,id=rng0,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=rng0'],
    ...['-device', 'pvpanic'],
  ];
}

/** QEMU cannot start programs, change its user or its limits, whatever a guest makes it do. */
export const sandbox = ['-sandbox', 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny'];

export function acceleratorArguments(accelerator: Accelerator): string[] {
  return accelerator === 'kvm' ? ['-accel', 'kvm', '-cpu', 'host'] : ['-accel', 'tcg,thread=multi', '-cpu', 'max'];
}

// Image locks stay on: a second QEMU on one disk is refused by the kernel.
const disk = [
  '-blockdev',
  JSON.stringify({
    'node-name': 'disk-file',
    driver: 'file',
    filename: guestFiles.disk,
    locking: 'on',
    discard: 'unmap',
  }),
  '-blockdev',
  JSON.stringify({ 'node-name': 'disk', driver: 'qcow2', file: 'disk-file', discard: 'unmap' }),
  '-device',
  'virtio-blk-pci,drive=disk,bootindex=0',
];

// An IDE CD-ROM: some guests take a virtio one for their root disk.
const seed = [
  '-blockdev',
  JSON.stringify({ 'node-name': 'seed-file', driver: 'file', filename: guestFiles.seed, 'read-only': true }),
  '-blockdev',
  JSON.stringify({ 'node-name': 'seed', driver: 'raw', file: 'seed-file', 'read-only': true }),
  '-device',
  'ide-cd,bus=ide.1,drive=seed',
];

/** One uuid for each life of an instance, the same on every host and after every restart. */
export function guestUuid(instanceId: string, incarnation: number): string {
  const hex = createHash('sha256').update(`${instanceId}/${incarnation}`).digest('hex');
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  // Version 8 of RFC 9562: "by a rule of one's own".
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** In QEMU's own range. Every guest is alone on its network, so two may share one. */
export function macAddress(uuid: string): string {
  const hex = uuid.slice(-6);
  return `52:54:00:${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4, 6)}`;
}
