// The domain XML of one guest, and what Berth reads back from one: pure. Nothing in it is left for libvirt to guess: every image has its
// format, and the chain below the disk is written out, because libvirt would else believe what a guest wrote into its own disk's header.

import { join } from 'node:path';
import type { Accelerator } from '../../../../api/agent-protocol.ts';
import { type GuestVolume, runDiskSerial, runnerPort } from '../../driver.ts';
import type { GuestNetwork } from '../../../network/guest-network.ts';
import { guestFiles, macAddress } from '../../guest-life/guest-files.ts';
import { volumeDisks } from './domain-volumes.ts';
import { element, elementsAt, readXml, writeXml, type XmlElement, XmlError } from '../wire/xml.ts';

export interface DomainMachine {
  readonly instanceId: string;
  readonly incarnation: number;
  readonly uuid: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly seeded: boolean;
  /** It has a disk with a program, and the runner's port. */
  readonly runDisk?: boolean;
  /** What the disk is an overlay of. */
  readonly image: { readonly path: string; readonly format: 'qcow2' | 'raw' };
  /** Of its files; absolute. */
  readonly directory: string;
  readonly volumes?: readonly GuestVolume[];
  /** Its place in the network of the host. Absent: it is in the network of `DomainHost`. */
  readonly network?: GuestNetwork | undefined;
}

export interface DomainHost {
  readonly accelerator: Accelerator;
  /** A network of libvirt's, or `user`. */
  readonly network: string;
}

/** The network that needs no bridge: QEMU itself makes the guest's connections. */
export const userNetwork = 'user';

export const markNamespace = 'urn:berth:instance:1';
const markName = 'berth:instance';
export const agentChannel = 'org.qemu.guest_agent.0';
/** Behind those of all volumes. */
const runDiskTarget = 'vdz';

export const consoleSocket = 'console.sock';
/** Ours, as the console's: they are found while libvirtd is away. No longer than the console's. */
export const runnerSockets = { runner: 'run.sock', runnerSerial: 'run-tty.sock' } as const;
/** `sun_path` of the kernel, without its last byte. */
export const socketPathBytesMax = 107;

export const domainName = (instanceId: string): string => `berth-${instanceId}`;

/** Throws `XmlError` for a directory with control characters. */
export function domainXml(machine: DomainMachine, host: DomainHost): string {
  const { instanceId, incarnation, directory } = machine;
  const mark = { 'xmlns:berth': markNamespace, id: instanceId, incarnation, directory };
  return writeXml(
    element(
      'domain',
      { type: host.accelerator === 'kvm' ? 'kvm' : 'qemu' },
      element('name', {}, domainName(instanceId)),
      element('uuid', {}, machine.uuid),
      element('metadata', {}, element(markName, mark)),
      element('memory', { unit: 'MiB' }, machine.memoryMiB),
      element('vcpu', { placement: 'static' }, machine.cpus),
      element('os', {}, element('type', { arch: 'x86_64', machine: 'pc' }, 'hvm')),
      element('features', {}, element('acpi'), element('apic')),
      element('cpu', { mode: host.accelerator === 'kvm' ? 'host-passthrough' : 'maximum' }),
      element('clock', { offset: 'utc' }, element('timer', { name: 'hpet', present: 'no' })),
      element('on_poweroff', {}, 'destroy'),
      element('on_reboot', {}, 'restart'),
      // Kept, so that an agent that was away still learns of the panic. libvirt itself keeps the reason of any other end.
      element('on_crash', {}, 'preserve'),
      element('devices', {}, ...devices(machine, host)),
    ),
  );
}

function devices(machine: DomainMachine, host: DomainHost): XmlElement[] {
  const { directory } = machine;
  return [
    element(
      'disk',
      { type: 'file', device: 'disk' },
      element('driver', { name: 'qemu', type: 'qcow2', discard: 'unmap' }),
      element('source', { file: join(directory, guestFiles.disk) }),
      backing(machine.image),
      element('target', { dev: 'vda', bus: 'virtio' }),
      element('boot', { order: 1 }),
    ),
    // An IDE CD-ROM: some guests take a virtio one for their root disk.
    ...(machine.seeded
      ? [
          element(
            'disk',
            { type: 'file', device: 'cdrom' },
            element('driver', { name: 'qemu', type: 'raw' }),
            element('source', { file: join(directory, guestFiles.seed) }),
            element('target', { dev: 'hdc', bus: 'ide' }),
            element('readonly'),
          ),
        ]
      : []),
    ...volumeDisks(machine.volumes ?? []),
    ...(machine.runDisk
      ? [
          element(
            'disk',
            { type: 'file', device: 'disk' },
            element('driver', { name: 'qemu', type: 'raw' }),
            element('source', { file: join(directory, guestFiles.runDisk) }),
            element('backingStore'),
            element('target', { dev: runDiskTarget, bus: 'virtio' }),
            element('readonly'),
            element('serial', {}, runDiskSerial),
          ),
        ]
      : []),
    networkInterface(machine, host),
    element(
      'serial',
      { type: 'unix' },
      element('source', { mode: 'bind', path: join(directory, consoleSocket) }),
      element('log', { file: join(directory, guestFiles.console), append: 'on' }),
      element('target', { type: 'isa-serial', port: 0 }),
    ),
    // For guests without a driver for the runner's port.
    ...(machine.runDisk
      ? [
          element(
            'serial',
            { type: 'unix' },
            element('source', { mode: 'bind', path: join(directory, runnerSockets.runnerSerial) }),
            element('target', { type: 'isa-serial', port: 1 }),
          ),
        ]
      : []),
    channel(agentChannel, { mode: 'bind' }),
    ...(machine.runDisk ? [channel(runnerPort, { mode: 'bind', path: join(directory, runnerSockets.runner) })] : []),
    element('controller', { type: 'usb', model: 'none' }),
    element('graphics', { type: 'vnc' }, element('listen', { type: 'socket' })),
    element('video', {}, element('model', { type: 'vga' })),
    element('memballoon', { model: 'none' }),
    element('rng', { model: 'virtio' }, element('backend', { model: 'random' }, '/dev/urandom')),
    element('panic', { model: 'isa' }),
  ];
}

/** Without a path, libvirt chooses one. */
function channel(name: string, source: { readonly mode: 'bind'; readonly path?: string }): XmlElement {
  return element(
    'channel',
    { type: 'unix' },
    element('source', { ...source }),
    element('target', { type: 'virtio', name }),
  );
}

/** Many guests stand on one image, so its owner stays who it is: with the right to change its mode a guest's QEMU could write to it. */
function backing({ path, format }: DomainMachine['image']): XmlElement {
  return element(
    'backingStore',
    { type: 'file' },
    element('format', { type: format }),
    element('source', { file: path }, element('seclabel', { model: 'dac', relabel: 'no' })),
    element('backingStore'),
  );
}

function networkInterface({ uuid, network: place }: DomainMachine, { network }: DomainHost): XmlElement {
  if (place !== undefined) {
    return element(
      'interface',
      { type: 'ethernet' },
      element('mac', { address: place.macAddress }),
      // The tap is there before the domain starts, and is not libvirt's to make, to connect or to remove.
      element('target', { dev: place.tap, managed: 'no' }),
      element('model', { type: 'virtio' }),
      element('rom', { bar: 'off' }),
    );
  }
  return element(
    'interface',
    { type: network === userNetwork ? 'user' : 'network' },
    element('mac', { address: macAddress(uuid) }),
    network === userNetwork ? undefined : element('source', { network }),
    element('model', { type: 'virtio' }),
    element('rom', { bar: 'off' }),
  );
}

/** Whose domain it is. */
export interface DomainMark {
  readonly instanceId: string;
  readonly incarnation: number;
  readonly directory: string;
}

/** The mark in a domain's XML; undefined: it is not of Berth, or cannot be read. */
export function readMark(xml: string): DomainMark | undefined {
  const domain = readOrNothing(xml);
  const marks = domain === undefined ? [] : elementsAt(domain, 'metadata', markName);
  const { 'xmlns:berth': namespace, id, incarnation, directory } = marks[0]?.attributes ?? {};
  if (marks.length !== 1 || namespace !== markNamespace || id === undefined || directory === undefined)
    return undefined;
  return /^\d{1,15}$/.test(incarnation ?? '')
    ? { instanceId: id, incarnation: Number(incarnation), directory }
    : undefined;
}

/** What only a running domain has. */
export interface LiveDomain {
  /** Paths, as the host of libvirt knows them. */
  readonly vncSocket?: string;
  readonly guestAgentSocket?: string;
  /** True while a guest agent holds its end. */
  readonly guestAgentConnected: boolean;
}

/** Throws `XmlError`. */
export function readLiveDomain(xml: string): LiveDomain {
  const domain = readXml(xml);
  const listens = elementsAt(domain, 'devices', 'graphics', 'listen');
  const vncSocket = listens.find(({ attributes }) => attributes['type'] === 'socket')?.attributes['socket'];
  const channel = elementsAt(domain, 'devices', 'channel').find((each) =>
    elementsAt(each, 'target').some(({ attributes }) => attributes['name'] === agentChannel),
  );
  const [source, target] = ['source', 'target'].map((name) => channel && elementsAt(channel, name)[0]?.attributes);
  return {
    ...(vncSocket === undefined ? {} : { vncSocket }),
    ...(source?.['path'] === undefined ? {} : { guestAgentSocket: source['path'] }),
    guestAgentConnected: target?.['state'] === 'connected',
  };
}

/** The XML of a domain that somebody else made may hold anything. */
function readOrNothing(xml: string): XmlElement | undefined {
  try {
    return readXml(xml);
  } catch (error) {
    if (error instanceof XmlError) return undefined;
    throw error;
  }
}
