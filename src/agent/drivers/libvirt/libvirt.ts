// libvirt, as far as the driver uses it: one function a procedure, over one connection. The procedure numbers and the order of what
// they take are libvirt's remote protocol, which never changes what it has once given a number.

import type { Clock } from '../../../base/clock.ts';
import type { InterfaceAddresses } from '../guest-life/ways-in/interface-addresses.ts';
import { connectRpc, LibvirtError, libvirtErrors, type Rpc } from './wire/rpc.ts';
import { type XdrReader, type XdrWriter, xdrWriter } from './wire/xdr.ts';

/** What libvirt calls a guest by. */
export interface Domain {
  readonly name: string;
  /** In the form of RFC 9562. */
  readonly uuid: string;
  /** Of the running one; -1 while it does not run. */
  readonly id: number;
}

/** `virDomainState` of libvirt-domain.h. */
export const domainStates = [
  'none',
  'running',
  'blocked',
  'paused',
  'shutdown',
  'shutoff',
  'crashed',
  'suspended',
] as const;
export type DomainState = (typeof domainStates)[number];

/** `virDomainEventType` of libvirt-domain.h. */
export const lifecycleEvents = [
  'defined',
  'undefined',
  'started',
  'suspended',
  'resumed',
  'stopped',
  'shutdown',
  'pmsuspended',
  'crashed',
] as const;

export interface LifecycleEvent {
  readonly domain: Domain;
  readonly event: (typeof lifecycleEvents)[number];
  /** libvirt's own number; its meaning hangs on the event. */
  readonly detail: number;
}

/** `virDomainEventIOErrorAction` of libvirt-domain.h. */
export const diskErrorActions = ['none', 'paused', 'reported'] as const;

/** A guest could not use one of its disks. */
export interface DiskErrorEvent {
  readonly domain: Domain;
  readonly action: (typeof diskErrorActions)[number];
  /** "enospc", or empty. */
  readonly reason: string;
}

/** Where addresses are looked for: leases of libvirt's own DHCP, the guest agent, or the host's ARP table. */
export const addressSources = { lease: 0, agent: 1, arp: 2 } as const;

/** Every function throws `LibvirtError`. */
export interface Libvirt {
  /** "9.0.0", of the daemon. */
  version(): Promise<string>;
  /** Of its hypervisor: "7.2.22". */
  hypervisorVersion(): Promise<string>;
  capabilities(): Promise<string>;
  /** Makes it known, and lasting; replaces what had the same name and uuid. */
  define(xml: string): Promise<Domain>;
  byName(name: string): Promise<Domain | undefined>;
  byUuid(uuid: string): Promise<Domain | undefined>;
  domains(): Promise<readonly Domain[]>;
  /** `reason`: libvirt's own number; its meaning hangs on the state. */
  state(domain: Domain): Promise<{ readonly state: DomainState; readonly reason: number }>;
  xml(domain: Domain): Promise<string>;
  start(domain: Domain): Promise<void>;
  /** Presses the power button; a guest agent is not asked. */
  shutdown(domain: Domain): Promise<void>;
  /** Ends it, whatever it does. Harmless when it does not run. */
  destroy(domain: Domain): Promise<void>;
  suspend(domain: Domain): Promise<void>;
  resume(domain: Domain): Promise<void>;
  /** With all that libvirt keeps of it. Harmless when it is not known. */
  undefine(domain: Domain): Promise<void>;
  /** Of its disks those that cannot be used, and whether because no room is left. Asks QEMU, which may hang. */
  diskErrors(domain: Domain): Promise<readonly { readonly disk: string; readonly noRoom: boolean }[]>;
  /** Says a line to QEMU's own monitor, which may hang, and answers what that says. */
  monitor(domain: Domain, line: string): Promise<string>;
  /** Says a command of QEMU's control protocol to it, as JSON, and answers what it says, also when that is an error. */
  command(domain: Domain, json: string): Promise<string>;
  /** While it runs, and for this run alone. */
  attachDevice(domain: Domain, xml: string): Promise<void>;
  /** Asks the guest to let go of it; may resolve before it has. */
  detachDevice(domain: Domain, xml: string): Promise<void>;
  /** Of a disk that it has open. `target`: as `vdb`. */
  resizeDisk(domain: Domain, target: string, sizeBytes: number): Promise<void>;
  /** Says a command to the guest's agent, which may hang or not be there, and answers what that says; both are JSON. */
  askAgent(domain: Domain, command: string, timeoutSeconds: number): Promise<string>;
  addresses(domain: Domain, source: keyof typeof addressSources): Promise<readonly InterfaceAddresses[]>;
  hasNetwork(name: string): Promise<boolean>;
  /** Starts it when it is known and does not run. Answers its bridge; undefined: there is none of that name. */
  ensureNetwork(name: string): Promise<{ readonly bridge: string; readonly started: boolean } | undefined>;
  /** Resolves with the reason when the connection has ended. */
  readonly closed: Promise<string>;
  close(): void;
}

export interface LibvirtOptions {
  /** Of the daemon's socket. */
  readonly path: string;
  /** As `qemu:///system`. */
  readonly uri: string;
  readonly clock: Clock;
  /** Missing: nothing is told. */
  readonly onLifecycle?: (event: LifecycleEvent) => void;
  readonly onDiskError?: (event: DiskErrorEvent) => void;
}

const procedures = {
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
  domainShutdown: 258,
  domainDiskErrors: 263,
  allDomains: 273,
  eventRegister: 316,
  eventLifecycle: 318,
  eventDiskError: 324,
  interfaceAddresses: 353,
} as const;
type Procedure = keyof typeof procedures;

/** Of libvirt's QEMU program. */
const monitorProcedure = 1;
const agentProcedure = 3;
const monitorIsForPeople = 1;
/** `VIR_DOMAIN_AFFECT_LIVE`. */
const affectLive = 1;
/** `VIR_DOMAIN_BLOCK_RESIZE_BYTES`. */
const sizeInBytes = 1;
/** libvirt itself waits 5 s for the guest; nothing else can be done with a guest whose QEMU hangs meanwhile. */
const deviceTimeoutMs = 15_000;
const powerButton = 1;
/** As many as the protocol allows. */
const diskErrorsMax = 256;
const noRoom = 2;

const auth = { none: 0, polkit: 2 } as const;
/** `virDomainEventID` of libvirt-domain.h. */
const eventIds = { lifecycle: 0, diskError: 6 } as const;
/** Managed save, snapshots' and checkpoints' metadata, NVRAM: else libvirt refuses to forget the domain. */
const undefineFlags = 1 | 2 | 4 | 16;
const callTimeoutMs = 30_000;
/** libvirt may ask QEMU first what it can do: several times, where KVM opens and cannot be used, and some seconds each on a busy host. */
const defineTimeoutMs = 120_000;
/** It answers in under a second; this is for a host that swaps, or a guest whose memory must be found first. */
const startTimeoutMs = 60_000;
/** libvirt itself waits up to 15 s for SIGTERM and as long for SIGKILL. */
const destroyTimeoutMs = 60_000;

/** Connected, let in, and told of what is listened to. */
export async function openLibvirt({ path, uri, clock, onLifecycle, onDiskError }: LibvirtOptions): Promise<Libvirt> {
  const rpc = await connectRpc({
    path,
    clock,
    timeoutMs: callTimeoutMs,
    onEvent(procedure, body) {
      if (procedure === procedures.eventLifecycle) onLifecycle?.(lifecycleOf(body));
      if (procedure === procedures.eventDiskError) onDiskError?.(diskErrorOf(body));
    },
  });
  try {
    await letIn(rpc, path);
    await call(rpc, 'connectOpen', xdrWriter().maybeString(uri).uint(0));
    if (onLifecycle) await call(rpc, 'eventRegister', xdrWriter().int(eventIds.lifecycle).uint(0));
    if (onDiskError) await call(rpc, 'eventRegister', xdrWriter().int(eventIds.diskError).uint(0));
  } catch (error) {
    rpc.close();
    throw error;
  }
  return libvirtOver(rpc);
}

function libvirtOver(rpc: Rpc): Libvirt {
  const of = (domain: Domain): XdrWriter => writeDomain(domain);
  const monitor = async (domain: Domain, line: string, flags: number): Promise<string> => {
    const body = of(domain).string(line).uint(flags);
    return (await rpc.call({ program: 'qemu', procedure: monitorProcedure, name: 'domainMonitor', body })).string();
  };
  /** Undefined where libvirt says that there is none. */
  const found = async <Value>(asked: Promise<Value>, missing: number): Promise<Value | undefined> =>
    asked.catch((error: unknown) => {
      if (error instanceof LibvirtError && error.code === missing) return undefined;
      throw error;
    });
  const networkOf = (name: string): Promise<(() => XdrWriter) | undefined> =>
    found(call(rpc, 'networkByName', xdrWriter().string(name)).then(readNetwork), libvirtErrors.noNetwork);
  return {
    version: async () => versionText((await call(rpc, 'libraryVersion')).hyper()),
    hypervisorVersion: async () => versionText((await call(rpc, 'hypervisorVersion')).hyper()),
    capabilities: async () => (await call(rpc, 'capabilities')).string(),
    define: async (xml) => readDomain(await call(rpc, 'domainDefine', xdrWriter().string(xml), defineTimeoutMs)),
    byName: (name) =>
      found(call(rpc, 'domainByName', xdrWriter().string(name)).then(readDomain), libvirtErrors.noDomain),
    byUuid: (uuid) =>
      found(call(rpc, 'domainByUuid', xdrWriter().opaque(uuidBytes(uuid))).then(readDomain), libvirtErrors.noDomain),
    domains: async () => (await call(rpc, 'allDomains', xdrWriter().int(1).uint(0))).array(readDomain),
    async state(domain) {
      const answer = await call(rpc, 'domainState', of(domain).uint(0));
      return { state: domainStates[answer.int()] ?? 'none', reason: answer.int() };
    },
    xml: async (domain) => (await call(rpc, 'domainXml', of(domain).uint(0))).string(),
    start: async (domain) => void (await call(rpc, 'domainCreate', of(domain), startTimeoutMs)),
    shutdown: async (domain) => void (await call(rpc, 'domainShutdown', of(domain).uint(powerButton))),
    async destroy(domain) {
      const ended = call(rpc, 'domainDestroy', of(domain), destroyTimeoutMs);
      await found(found(ended, libvirtErrors.operationInvalid), libvirtErrors.noDomain);
    },
    suspend: async (domain) => void (await call(rpc, 'domainSuspend', of(domain))),
    resume: async (domain) => void (await call(rpc, 'domainResume', of(domain))),
    async undefine(domain) {
      await found(call(rpc, 'domainUndefine', of(domain).uint(undefineFlags)), libvirtErrors.noDomain);
    },
    async diskErrors(domain) {
      const answer = await call(rpc, 'domainDiskErrors', of(domain).uint(diskErrorsMax).uint(0));
      return answer.array((from) => ({ disk: from.string(), noRoom: from.int() === noRoom }));
    },
    monitor: (domain, line) => monitor(domain, line, monitorIsForPeople),
    command: (domain, json) => monitor(domain, json, 0),
    async attachDevice(domain, xml) {
      await call(rpc, 'domainAttachDevice', of(domain).string(xml).uint(affectLive), deviceTimeoutMs);
    },
    async detachDevice(domain, xml) {
      await call(rpc, 'domainDetachDevice', of(domain).string(xml).uint(affectLive), deviceTimeoutMs);
    },
    async resizeDisk(domain, target, sizeBytes) {
      const body = of(domain).string(target).uhyper(sizeBytes).uint(sizeInBytes);
      await call(rpc, 'domainBlockResize', body, deviceTimeoutMs);
    },
    async askAgent(domain, command, timeoutSeconds) {
      const body = of(domain).string(command).int(timeoutSeconds).uint(0);
      const said = await rpc.call({ program: 'qemu', procedure: agentProcedure, name: 'domainAgentCommand', body });
      return said.maybeString() ?? '';
    },
    async addresses(domain, source) {
      const asked = of(domain).uint(addressSources[source]).uint(0);
      return (await call(rpc, 'interfaceAddresses', asked)).array(readInterface);
    },
    hasNetwork: async (name) => (await networkOf(name)) !== undefined,
    async ensureNetwork(name) {
      const network = await networkOf(name);
      if (!network) return undefined;
      const active = (await call(rpc, 'networkIsActive', network())).int() !== 0;
      // Another may start it at the same time.
      if (!active) await found(call(rpc, 'networkCreate', network()), libvirtErrors.operationInvalid);
      return { bridge: (await call(rpc, 'networkBridge', network())).string(), started: !active };
    },
    closed: rpc.closed,
    close: () => rpc.close(),
  };
}

function call(rpc: Rpc, procedure: Procedure, body?: XdrWriter, timeoutMs?: number): Promise<XdrReader> {
  return rpc.call({
    procedure: procedures[procedure],
    name: procedure,
    ...(body === undefined ? {} : { body }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
}

/** Root is let in as it is; others are asked for by polkit where the daemon's configuration says so. */
async function letIn(rpc: Rpc, path: string): Promise<void> {
  const kinds = (await call(rpc, 'authList')).array((from) => from.int());
  if (kinds.length === 0 || kinds.includes(auth.none)) return;
  if (!kinds.includes(auth.polkit))
    throw new LibvirtError(
      `libvirt at ${path} asks for a login; set auth_unix_rw = "none" in libvirtd.conf, or run as root`,
    );
  await call(rpc, 'authPolkit');
}

function lifecycleOf(body: XdrReader): LifecycleEvent {
  body.int(); // which registration it is of: there is one
  return { domain: readDomain(body), event: lifecycleEvents[body.int()] ?? 'defined', detail: body.int() };
}

function diskErrorOf(body: XdrReader): DiskErrorEvent {
  body.int();
  const domain = readDomain(body);
  body.string(); // of the file
  body.string(); // QEMU's name of the disk
  return { domain, action: diskErrorActions[body.int()] ?? 'none', reason: body.string() };
}

function readDomain(from: XdrReader): Domain {
  return { name: from.string(), uuid: uuidText(from.opaque(16)), id: from.int() };
}

function writeDomain({ name, uuid, id }: Domain): XdrWriter {
  return xdrWriter().string(name).opaque(uuidBytes(uuid)).int(id);
}

/** Answers what writes it again. */
function readNetwork(from: XdrReader): () => XdrWriter {
  const name = from.string();
  const uuid = Buffer.from(from.opaque(16));
  return () => xdrWriter().string(name).opaque(uuid);
}

function readInterface(from: XdrReader): InterfaceAddresses {
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

function uuidBytes(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll('-', ''), 'hex');
}

/** libvirt packs 9.0.1 as 9000001. */
function versionText(packed: number): string {
  return [Math.floor(packed / 1_000_000), Math.floor(packed / 1_000) % 1_000, packed % 1_000].join('.');
}
