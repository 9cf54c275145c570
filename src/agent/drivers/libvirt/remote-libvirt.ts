// libvirt over one connection: one method per procedure of its remote protocol.

import type { InterfaceAddresses } from '../guest-life/ways-in/interface-addresses.ts';
import { addressSources, type Domain, type DomainState, domainStates, type Libvirt } from './libvirt.ts';
import {
  call,
  type Procedure,
  readDomain,
  readInterface,
  readNetwork,
  uuidBytes,
  versionText,
  writeDomain,
} from './wire/remote-protocol.ts';
import { LibvirtError, libvirtErrors, type Rpc } from './wire/rpc.ts';
import { type XdrReader, type XdrWriter, xdrWriter } from './wire/xdr.ts';

/** Procedures of libvirt's QEMU program. */
const monitorProcedure = 1;
const agentProcedure = 3;
const monitorIsForPeople = 1;
/** `VIR_DOMAIN_AFFECT_LIVE`. */
const affectLive = 1;
/** `VIR_DOMAIN_BLOCK_RESIZE_BYTES`. */
const sizeInBytes = 1;
/** libvirt itself waits 5 s for the guest. The limit allows for a QEMU that hangs meanwhile. */
const deviceTimeoutMs = 15_000;
const powerButton = 1;
/** The maximum of the protocol. */
const diskErrorsMax = 256;
const noRoom = 2;
/** The maximum of the protocol, and the tag of what QEMU holds of the host's memory: `VIR_DOMAIN_MEMORY_STAT_RSS`. */
const memoryStatsMax = 1024;
const residentMemory = 7;

/** Managed save, metadata of snapshots and checkpoints, NVRAM: without these flags, libvirt refuses to undefine such a domain. */
const undefineFlags = 1 | 2 | 4 | 16;
/** libvirt may ask QEMU for its capabilities first: several times where KVM opens and does not work, a few seconds each on a busy host. */
const defineTimeoutMs = 120_000;
/** A start takes under a second; the limit allows for a host that swaps, or a guest whose memory must be freed first. */
const startTimeoutMs = 60_000;
/** libvirt itself waits up to 15 s after SIGTERM, and again after SIGKILL. */
const destroyTimeoutMs = 60_000;

export class RemoteLibvirt implements Libvirt {
  readonly closed: Promise<string>;
  readonly #rpc: Rpc;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
    this.closed = rpc.closed;
  }

  close(): void {
    this.#rpc.close();
  }

  async version(): Promise<string> {
    return versionText((await this.#call('libraryVersion')).hyper());
  }

  async hypervisorVersion(): Promise<string> {
    return versionText((await this.#call('hypervisorVersion')).hyper());
  }

  async capabilities(): Promise<string> {
    return (await this.#call('capabilities')).string();
  }

  async define(xml: string): Promise<Domain> {
    return readDomain(await this.#call('domainDefine', xdrWriter().string(xml), defineTimeoutMs));
  }

  byName(name: string): Promise<Domain | undefined> {
    const asked = this.#call('domainByName', xdrWriter().string(name));
    return unlessMissing(asked.then(readDomain), libvirtErrors.noDomain);
  }

  byUuid(uuid: string): Promise<Domain | undefined> {
    const asked = this.#call('domainByUuid', xdrWriter().opaque(uuidBytes(uuid)));
    return unlessMissing(asked.then(readDomain), libvirtErrors.noDomain);
  }

  async domains(): Promise<readonly Domain[]> {
    return (await this.#call('allDomains', xdrWriter().int(1).uint(0))).array(readDomain);
  }

  async state(domain: Domain): Promise<{ readonly state: DomainState; readonly reason: number }> {
    const answer = await this.#call('domainState', writeDomain(domain).uint(0));
    return { state: domainStates[answer.int()] ?? 'none', reason: answer.int() };
  }

  async xml(domain: Domain): Promise<string> {
    return (await this.#call('domainXml', writeDomain(domain).uint(0))).string();
  }

  async start(domain: Domain): Promise<void> {
    await this.#call('domainCreate', writeDomain(domain), startTimeoutMs);
  }

  async shutdown(domain: Domain): Promise<void> {
    await this.#call('domainShutdown', writeDomain(domain).uint(powerButton));
  }

  async destroy(domain: Domain): Promise<void> {
    const ended = this.#call('domainDestroy', writeDomain(domain), destroyTimeoutMs);
    await unlessMissing(unlessMissing(ended, libvirtErrors.operationInvalid), libvirtErrors.noDomain);
  }

  async suspend(domain: Domain): Promise<void> {
    await this.#call('domainSuspend', writeDomain(domain));
  }

  async resume(domain: Domain): Promise<void> {
    await this.#call('domainResume', writeDomain(domain));
  }

  async undefine(domain: Domain): Promise<void> {
    const removed = this.#call('domainUndefine', writeDomain(domain).uint(undefineFlags));
    await unlessMissing(removed, libvirtErrors.noDomain);
  }

  async diskErrors(domain: Domain): Promise<readonly { readonly disk: string; readonly noRoom: boolean }[]> {
    const answer = await this.#call('domainDiskErrors', writeDomain(domain).uint(diskErrorsMax).uint(0));
    return answer.array((from) => ({ disk: from.string(), noRoom: from.int() === noRoom }));
  }

  monitor(domain: Domain, line: string): Promise<string> {
    return this.#monitor(domain, line, monitorIsForPeople);
  }

  command(domain: Domain, json: string): Promise<string> {
    return this.#monitor(domain, json, 0);
  }

  async usage(domain: Domain): Promise<{ readonly cpuMs: number; readonly memoryBytes: number }> {
    const info = await this.#call('domainInfo', writeDomain(domain));
    info.uint(); // its state
    const currentKiB = (info.hyper(), info.hyper());
    info.uint(); // how many processors it has
    const cpuMs = Math.floor(info.hyper() / 1e6);
    const stats = await this.#call('domainMemoryStats', writeDomain(domain).uint(memoryStatsMax).uint(0));
    const values = stats.array((from) => ({ tag: from.int(), value: from.hyper() }));
    const residentKiB = values.find(({ tag }) => tag === residentMemory)?.value;
    return { cpuMs, memoryBytes: (residentKiB ?? currentKiB) * 1024 };
  }

  async traffic(
    domain: Domain,
    target: string,
  ): Promise<{ readonly networkReceivedBytes: number; readonly networkSentBytes: number }> {
    const stats = await this.#call('domainInterfaceStats', writeDomain(domain).string(target));
    // Bytes, packets, errors and drops, received and then sent; libvirt counts from the guest's side.
    const [networkReceivedBytes = 0, , , , networkSentBytes = 0] = Array.from({ length: 8 }, () => stats.hyper());
    return { networkReceivedBytes: Math.max(0, networkReceivedBytes), networkSentBytes: Math.max(0, networkSentBytes) };
  }

  async attachDevice(domain: Domain, xml: string): Promise<void> {
    await this.#call('domainAttachDevice', writeDomain(domain).string(xml).uint(affectLive), deviceTimeoutMs);
  }

  async detachDevice(domain: Domain, xml: string): Promise<void> {
    await this.#call('domainDetachDevice', writeDomain(domain).string(xml).uint(affectLive), deviceTimeoutMs);
  }

  async resizeDisk(domain: Domain, target: string, sizeBytes: number): Promise<void> {
    const body = writeDomain(domain).string(target).uhyper(sizeBytes).uint(sizeInBytes);
    await this.#call('domainBlockResize', body, deviceTimeoutMs);
  }

  async askAgent(domain: Domain, command: string, timeoutSeconds: number): Promise<string> {
    const body = writeDomain(domain).string(command).int(timeoutSeconds).uint(0);
    const procedure = agentProcedure;
    const said = await this.#rpc.call({ program: 'qemu', procedure, name: 'domainAgentCommand', body });
    return said.maybeString() ?? '';
  }

  async addresses(domain: Domain, source: keyof typeof addressSources): Promise<readonly InterfaceAddresses[]> {
    const asked = writeDomain(domain).uint(addressSources[source]).uint(0);
    return (await this.#call('interfaceAddresses', asked)).array(readInterface);
  }

  async hasNetwork(name: string): Promise<boolean> {
    return (await this.#network(name)) !== undefined;
  }

  async ensureNetwork(name: string): Promise<{ readonly bridge: string; readonly started: boolean } | undefined> {
    const network = await this.#network(name);
    if (!network) return undefined;
    const active = (await this.#call('networkIsActive', network())).int() !== 0;
    // Another client may start it at the same time.
    if (!active) await unlessMissing(this.#call('networkCreate', network()), libvirtErrors.operationInvalid);
    return { bridge: (await this.#call('networkBridge', network())).string(), started: !active };
  }

  #network(name: string): Promise<(() => XdrWriter) | undefined> {
    const asked = this.#call('networkByName', xdrWriter().string(name));
    return unlessMissing(asked.then(readNetwork), libvirtErrors.noNetwork);
  }

  async #monitor(domain: Domain, line: string, flags: number): Promise<string> {
    const body = writeDomain(domain).string(line).uint(flags);
    const procedure = monitorProcedure;
    return (await this.#rpc.call({ program: 'qemu', procedure, name: 'domainMonitor', body })).string();
  }

  #call(procedure: Procedure, body?: XdrWriter, timeoutMs?: number): Promise<XdrReader> {
    return call(this.#rpc, procedure, body, timeoutMs);
  }
}

/** Undefined where libvirt answers with this error. */
async function unlessMissing<Value>(asked: Promise<Value>, missing: number): Promise<Value | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof LibvirtError && error.code === missing) return undefined;
    throw error;
  }
}
