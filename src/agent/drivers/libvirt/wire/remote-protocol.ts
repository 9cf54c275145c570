// The part of libvirt's remote protocol (remote_protocol.x) that the driver uses: numbers of procedures, and how values are read and written. The
// protocol never changes a number or the order of arguments once they are published.

import type { InterfaceAddresses } from '../../guest-life/ways-in/interface-addresses.ts';
import {
  diskErrorActions,
  type DiskErrorEvent,
  type Domain,
  lifecycleEvents,
  type LifecycleEvent,
} from '../libvirt.ts';
import type { Rpc } from './rpc.ts';
import { type XdrReader, type XdrWriter, xdrWriter } from './xdr.ts';

export const procedures = {
  connectOpen: 1,
  hypervisorVersion: 4,
  capabilities: 7,
  domainCreate: 9,
  domainDefine: 11,
  domainDestroy: 12,
  domainXml: 14,
  domainByName: 23,
  domainByUuid: 24,
  domainResume: 28,
  domainSuspend: 34,
  networkCreate: 39,
  networkBridge: 45,
  networkByName: 46,
  authList: 66,
  authPolkit: 70,
  networkIsActive: 152,
  libraryVersion: 157,
  domainAttachDevice: 160,
  domainDetachDevice: 161,
  domainState: 212,
  domainUndefine: 231,
  domainBlockResize: 251,
  domainInfo: 16,
  domainInterfaceStats: 65,
  domainMemoryStats: 159,
  domainShutdown: 258,
  domainDiskErrors: 263,
  allDomains: 273,
  eventRegister: 316,
  eventLifecycle: 318,
  eventDiskError: 324,
  interfaceAddresses: 353,
} as const;
export type Procedure = keyof typeof procedures;

export function call(rpc: Rpc, procedure: Procedure, body?: XdrWriter, timeoutMs?: number): Promise<XdrReader> {
  return rpc.call({
    procedure: procedures[procedure],
    name: procedure,
    ...(body === undefined ? {} : { body }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
}

export function lifecycleOf(body: XdrReader): LifecycleEvent {
  body.int(); // the registration: there is one only
  return { domain: readDomain(body), event: lifecycleEvents[body.int()] ?? 'defined', detail: body.int() };
}

export function diskErrorOf(body: XdrReader): DiskErrorEvent {
  body.int();
  const domain = readDomain(body);
  body.string(); // of the file
  body.string(); // QEMU's name of the disk
  return { domain, action: diskErrorActions[body.int()] ?? 'none', reason: body.string() };
}

export function readDomain(from: XdrReader): Domain {
  return { name: from.string(), uuid: uuidText(from.opaque(16)), id: from.int() };
}

export function writeDomain({ name, uuid, id }: Domain): XdrWriter {
  return xdrWriter().string(name).opaque(uuidBytes(uuid)).int(id);
}

/** Returns a function that writes the network again. */
export function readNetwork(from: XdrReader): () => XdrWriter {
  const name = from.string();
  const uuid = Buffer.from(from.opaque(16));
  return () => xdrWriter().string(name).opaque(uuid);
}

export function readInterface(from: XdrReader): InterfaceAddresses {
  const name = from.string();
  const macAddress = from.maybeString();
  const addresses = from.array((each) => {
    const version: 4 | 6 = each.int() === 0 ? 4 : 6;
    return { version, address: each.string(), prefix: each.uint() };
  });
  return { name, ...(macAddress === undefined ? {} : { macAddress }), addresses };
}

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

export function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

/** libvirt packs 9.0.1 as 9000001. */
export function versionText(packed: number): string {
  return [Math.floor(packed / 1_000_000), Math.floor(packed / 1_000) % 1_000, packed % 1_000].join('.');
}
