// QEMU's arguments for one guest: pure. All paths are relative to the guest's directory, where QEMU runs, so nothing a
// path may hold (spaces, commas, 108 bytes of socket path) can be misread.

import type { Accelerator, GuestPort } from '../../../api/agent-protocol.ts';
import type { Boot, Uefi } from '../../../api/instances/firmware.ts';
import type { GuestNetwork } from '../../network/guest-network.ts';
import { type GuestVolume, runDiskSerial, runnerPort } from '../driver.ts';
import { guestFiles, macAddress } from '../guest-life/guest-files.ts';
import { ownFolder } from '../../host/guest-user.ts';
import { firmwareFiles } from '../guest-life/boot/firmware.ts';
import { tpmArguments } from './tpm.ts';
import { volumeDevice, volumeNode } from './volume-devices.ts';

export const qemuFiles = {
  ...guestFiles,
  stderr: 'qemu.stderr',
  pid: 'qemu.pid',
  qmp: 'qmp.sock',
  consoleSocket: 'console.sock',
  vnc: 'vnc.sock',
  guestAgent: 'agent.sock',
  runner: 'run.sock',
  runnerSerial: 'run-tty.sock',
} as const;

/** Stands for the tap's descriptor until it is known. */
export const tapDescriptor = 'TAP-DESCRIPTOR';

export interface GuestMachine extends Boot {
  readonly instanceId: string;
  readonly uuid: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly seeded: boolean;
  /** It has a disk with a program, and the runner's port. */
  readonly runDisk?: boolean;
  readonly ports: readonly GuestPort[];
  /** Absent: QEMU's own user network. */
  readonly network?: GuestNetwork;
  readonly volumes?: readonly GuestVolume[];
}

export function qemuArguments(
  machine: GuestMachine,
  host: {
    readonly accelerator: Accelerator;
    readonly bindAddress: string;
    /** QEMU may make files in its own folder only, and open no tap. */
    readonly ownUser?: boolean;
    /** It waits for the memory of another machine, and then stays paused until it is resumed. */
    readonly incoming?: boolean;
  },
): string[] {
  const { network } = machine;
  const own = host.ownUser ? `${ownFolder}/` : '';
  const forwards = machine.ports.map(
    (port) => `,hostfwd=${port.protocol}:${host.bindAddress}:${port.hostPort}-:${port.guestPort}`,
  );
  // The tap is there before QEMU is; it runs no scripts, and may not.
  const netdev = network
    ? `tap,id=net0,${host.ownUser ? `fd=${tapDescriptor}` : `ifname=${network.tap},script=no,downscript=no`}`
    : `user,id=net0${forwards.join('')}`;
  const card = network?.macAddress ?? macAddress(machine.uuid);
  return [
    ...['-nodefaults', '-no-user-config'],
    ...['-name', `guest=${machine.instanceId}`, '-uuid', machine.uuid],
    ...['-pidfile', `${own}${qemuFiles.pid}`],
    ...sandbox,
    ...['-machine', machineOf(machine), ...acceleratorArguments(host.accelerator)],
    ...(machine.firmware === undefined ? [] : firmwareArguments(machine.firmware)),
    ...['-smp', `cpus=${machine.cpus},sockets=1`, '-m', `size=${machine.memoryMiB}M`],
    ...['-rtc', 'base=utc', '-boot', 'strict=on'],
    // A guest that powers off or panics leaves a paused QEMU behind: so an agent that was away still learns why it ended.
    ...['-action', 'shutdown=pause,panic=pause'],
    ...['-chardev', listening('qmp', `${own}${qemuFiles.qmp}`), '-mon', 'chardev=qmp,mode=control'],
    // The log has all that the guest says, whether or not anybody is connected; the socket is for what is typed.
    ...[
      '-chardev',
      `${listening('console', `${own}${qemuFiles.consoleSocket}`)},logfile=${qemuFiles.console},logappend=on`,
    ],
    ...['-serial', 'chardev:console'],
    ...['-vnc', `unix:${own}${qemuFiles.vnc}`, '-device', 'VGA'],
    ...['-device', 'virtio-serial-pci', '-chardev', listening('agent', `${own}${qemuFiles.guestAgent}`)],
    ...['-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0'],
    ...disk,
    ...(machine.seeded ? seed : []),
    ...['-netdev', netdev],
    ...['-device', `virtio-net-pci,netdev=net0,mac=${card},romfile=`],
    ...['-object', 'rng-random,id=rng0,filename=/dev/urandom', '-device', 'virtio-rng-pci,rng=rng0'],
    ...['-device', 'pvpanic'],
    ...(machine.tpm ? tpmArguments : []),
    ...(volumeBus(machine) === undefined ? [] : ['-device', `pcie-pci-bridge,id=${volumeBus(machine)}`]),
    ...(host.incoming ? ['-incoming', 'defer', '-S'] : []),
    // The last ones, so that the others stand on the bus where they stood without.
    ...(machine.runDisk ? [...runDisk, ...runnerArguments(own)] : []),
    ...(machine.volumes ?? []).flatMap((volume) => [
      ...['-blockdev', JSON.stringify(volumeNode(volume))],
      ...['-device', JSON.stringify(volumeDevice(volume, volumeBus(machine)))],
    ]),
  ];
}

/** Only the q35 has the system management mode in which firmware keeps its keys from the guest. Other guests keep the machine that they had. */
function machineOf({ firmware }: GuestMachine): string {
  const type = firmware === 'uefi-secure-boot' ? 'q35,hpet=off,smm=on' : 'pc,hpet=off';
  return firmware === undefined ? type : `${type},pflash0=uefi-code,pflash1=uefi-variables`;
}

function firmwareArguments(firmware: Uefi): string[] {
  const code = { 'node-name': 'uefi-code', driver: 'file', filename: firmwareFiles(firmware).code, 'read-only': true };
  const variables = { 'node-name': 'uefi-variables', driver: 'file', filename: qemuFiles.uefiVariables, locking: 'on' };
  return [
    ...['-blockdev', JSON.stringify(code), '-blockdev', JSON.stringify(variables)],
    ...(firmware === 'uefi-secure-boot' ? ['-global', 'driver=cfi.pflash01,property=secure,value=on'] : []),
  ];
}

/** Undefined: the root bus. On that of a q35, nothing can be attached while the guest runs. */
export function volumeBus({ firmware }: Boot): string | undefined {
  return firmware === 'uefi-secure-boot' ? 'volumes' : undefined;
}

const listening = (id: string, path: string): string => `socket,id=${id},path=${path},server=on,wait=off`;

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
    filename: qemuFiles.disk,
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
  JSON.stringify({ 'node-name': 'seed-file', driver: 'file', filename: qemuFiles.seed, 'read-only': true }),
  '-blockdev',
  JSON.stringify({ 'node-name': 'seed', driver: 'raw', file: 'seed-file', 'read-only': true }),
  '-device',
  'ide-cd,bus=ide.1,drive=seed',
];

const runDisk = [
  '-blockdev',
  JSON.stringify({ 'node-name': 'run-file', driver: 'file', filename: qemuFiles.runDisk, 'read-only': true }),
  '-blockdev',
  JSON.stringify({ 'node-name': 'run', driver: 'raw', file: 'run-file', 'read-only': true }),
  '-device',
  `virtio-blk-pci,drive=run,serial=${runDiskSerial}`,
];

/** A port on the controller that the guest agent's port has, too, and the second serial port for guests without a driver for it. */
function runnerArguments(own: string): string[] {
  return [
    ...['-chardev', listening('run', `${own}${qemuFiles.runner}`)],
    ...['-device', `virtserialport,chardev=run,name=${runnerPort}`],
    ...['-chardev', listening('run-tty', `${own}${qemuFiles.runnerSerial}`), '-serial', 'chardev:run-tty'],
  ];
}
