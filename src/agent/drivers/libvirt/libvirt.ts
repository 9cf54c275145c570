// The calls of libvirt that the driver uses, and what libvirt answers and reports.

import type { InterfaceAddresses } from '../guest-life/ways-in/interface-addresses.ts';

/** The identity of a guest in libvirt. */
export interface Domain {
  readonly name: string;
  /** In the form of RFC 9562. */
  readonly uuid: string;
  /** The id of the running domain; -1 while it does not run. */
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
  /** libvirt's own number; its meaning depends on the event. */
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

/** The sources of addresses: leases of libvirt's own DHCP, the guest agent, or the host's ARP table. */
export const addressSources = { lease: 0, agent: 1, arp: 2 } as const;

/** Every function throws `LibvirtError`. */
export interface Libvirt {
  /** The version of the daemon, such as "9.0.0". */
  version(): Promise<string>;
  /** The version of its hypervisor, such as "7.2.22". */
  hypervisorVersion(): Promise<string>;
  capabilities(): Promise<string>;
  /** Defines a persistent domain; replaces the domain with the same name and uuid. */
  define(xml: string): Promise<Domain>;
  byName(name: string): Promise<Domain | undefined>;
  byUuid(uuid: string): Promise<Domain | undefined>;
  domains(): Promise<readonly Domain[]>;
  /** `reason`: libvirt's own number; its meaning depends on the state. */
  state(domain: Domain): Promise<{ readonly state: DomainState; readonly reason: number }>;
  xml(domain: Domain): Promise<string>;
  start(domain: Domain): Promise<void>;
  /** Presses the power button; a guest agent is not asked. */
  shutdown(domain: Domain): Promise<void>;
  /** Ends the domain by force. Harmless when it does not run. */
  destroy(domain: Domain): Promise<void>;
  suspend(domain: Domain): Promise<void>;
  resume(domain: Domain): Promise<void>;
  /** Removes the definition and everything else that libvirt stores of the domain. Harmless when libvirt does not know it. */
  undefine(domain: Domain): Promise<void>;
  /** The disks that cannot be used; `noRoom`: because no room is left. Asks QEMU, which may hang. */
  diskErrors(domain: Domain): Promise<readonly { readonly disk: string; readonly noRoom: boolean }[]>;
  /** Sends a line to QEMU's own monitor, which may hang, and returns its output. */
  monitor(domain: Domain, line: string): Promise<string>;
  /** Sends a command of QEMU's control protocol as JSON, and returns the answer, also when it is an error. */
  command(domain: Domain, json: string): Promise<string>;
  /** Attaches a device to a running domain, for this run only. */
  attachDevice(domain: Domain, xml: string): Promise<void>;
  /** Asks the guest to release the device; may resolve before the guest has done so. */
  detachDevice(domain: Domain, xml: string): Promise<void>;
  /** Resizes a disk that the domain has open. `target`: such as `vdb`. */
  resizeDisk(domain: Domain, target: string, sizeBytes: number): Promise<void>;
  /** Sends a command to the guest's agent, which may hang or be missing, and returns its answer; both are JSON. */
  askAgent(domain: Domain, command: string, timeoutSeconds: number): Promise<string>;
  /** Since the start of the domain; `memoryBytes`: the resident memory of QEMU. */
  usage(domain: Domain): Promise<{ readonly cpuMs: number; readonly memoryBytes: number }>;
  /** Of an interface of the host, such as `vnet0`; as the guest sees it. */
  traffic(
    domain: Domain,
    target: string,
  ): Promise<{ readonly networkReceivedBytes: number; readonly networkSentBytes: number }>;
  addresses(domain: Domain, source: keyof typeof addressSources): Promise<readonly InterfaceAddresses[]>;
  hasNetwork(name: string): Promise<boolean>;
  /** Starts the network unless it runs. Returns its bridge; undefined: there is no network of that name. */
  ensureNetwork(name: string): Promise<{ readonly bridge: string; readonly started: boolean } | undefined>;
  /** Resolves with the reason when the connection has ended. */
  readonly closed: Promise<string>;
  close(): void;
}
