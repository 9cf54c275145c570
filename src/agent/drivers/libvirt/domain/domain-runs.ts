// Starts machines as domains of libvirt, and finds the domains that an earlier agent started. Ports of this host are published before a guest
// boots, or by its QEMU.

import type { Accelerator } from '../../../../api/agent-protocol.ts';
import type { Clock } from '../../../../base/clock.ts';
import { describeError, type Logger } from '../../../../base/log.ts';
import type { Prng } from '../../../../base/prng.ts';
import { DriverError } from '../../../host/driver-error.ts';
import type { HostNetwork } from '../../../network/host-network.ts';
import type { PortForwarder } from '../../../network/port-forwarder.ts';
import { publishAgain, publishByAgent } from '../../../network/publish-ports.ts';
import { hostBootId } from '../../guest-life/host-boot.ts';
import type { Machine, Run } from '../../guest-life/hypervisor.ts';
import { adoptPublished, connectGuest, startPublished } from '../../guest-life/ways-in/guest-link.ts';
import type { Connection } from '../connection.ts';
import { type DomainLog, readDomainLog } from './domain-log.ts';
import { lookAtDomain } from './domain-sight.ts';
import { domainXml, userNetwork } from './domain-xml.ts';
import type { Domain } from '../libvirt.ts';
import type { NetworkGuard } from '../network-guard.ts';
import { domainsOf, hasRunSinceDefined, isOurs, makeRoom } from './our-domains.ts';
import { publishByQemu } from '../published-ports.ts';
import { type DomainRun, type DomainRunOptions, endedRun, superviseDomain } from '../run.ts';
import { checkPaths, ensureNetwork, startDomain, startFailure } from './start-domain.ts';

export interface DomainRunsOptions {
  readonly connection: Connection;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** The name of a network of libvirt, or `user`. */
  readonly network: string;
  /** The network of the host, which new guests are connected to instead. */
  readonly hostNetwork?: HostNetwork;
  readonly networkGuard: NetworkGuard;
  /** Where published ports listen. */
  readonly bindAddress: string;
  /** How long a guest may take to release a volume. */
  readonly detachPatienceMs?: number;
  /** Where libvirt logs the output of its QEMU domains. */
  readonly logDirectory: string;
}

/** Starts a forwarder of the agent for the ports of a run that has begun. */
type Publish = (run: DomainRun) => PortForwarder;

export class DomainRuns {
  readonly #options: DomainRunsOptions;

  constructor(options: DomainRunsOptions) {
    this.#options = options;
  }

  /** Throws `DriverError`. */
  async start(machine: Machine, accelerator: Accelerator): Promise<Run> {
    try {
      return await this.#start(machine, accelerator);
    } catch (error) {
      throw startFailure(machine, error);
    }
  }

  async #start(machine: Machine, accelerator: Accelerator): Promise<Run> {
    const { clock, bindAddress, network, hostNetwork } = this.#options;
    const { record, directory } = machine;
    const what = `start ${record.instanceId}`;
    checkPaths(directory, what);
    if (record.image === undefined) {
      throw new DriverError('Internal', `cannot ${what}: its record does not say which image its disk stands on`);
    }
    const xml = domainXml({ ...record, image: record.image, directory }, { accelerator, network });
    if (record.network !== undefined) {
      await makeRoom(this.#options.connection, { record, directory });
      await connectGuest(hostNetwork, machine);
      return startPublished(machine, { clock, bindAddress }, () => this.#startDefined(machine, xml));
    }
    if (network === userNetwork) return this.#startOnUserNetwork(machine, xml);
    return this.#startOnLibvirtNetwork(machine, xml);
  }

  async #startOnUserNetwork(machine: Machine, xml: string): Promise<Run> {
    const { record, directory, log } = machine;
    await this.#options.networkGuard.close({ instanceId: record.instanceId, directory, log });
    await makeRoom(this.#options.connection, { record, directory });
    return this.#startDefined(machine, xml, async (domain) => {
      await publishByQemu(this.#options.connection, domain, { record, bindAddress: this.#options.bindAddress });
      return undefined;
    });
  }

  /** Takes the ports before the start: a guest whose ports are taken must not boot. */
  async #startOnLibvirtNetwork(machine: Machine, xml: string): Promise<Run> {
    const { bindAddress, clock, log, network } = this.#options;
    const { record, directory } = machine;
    await ensureNetwork(this.#options.connection, network, `start ${record.instanceId}`);
    await makeRoom(this.#options.connection, { record, directory });
    let run: DomainRun | undefined;
    const target = async (): Promise<string | undefined> => run?.currentAddress();
    const forwarder = await publishByAgent({ record, bindAddress, target, clock, log });
    try {
      return await this.#startDefined(machine, xml, async () => (followed) => {
        run = followed;
        return forwarder;
      });
    } catch (error) {
      await forwarder.close();
      throw error;
    }
  }

  /** `prepare` runs as soon as the domain runs. */
  async #startDefined(
    machine: Machine,
    xml: string,
    prepare: (domain: Domain) => Promise<Publish | undefined> = async () => undefined,
  ): Promise<Run> {
    const domain = await this.#options.connection.ask((libvirt) => libvirt.define(xml));
    try {
      await startDomain(this.#options.connection, domain);
      return this.#follow(machine, domain, await prepare(domain));
    } catch (error) {
      await this.#options.connection
        .apart((libvirt) => libvirt.destroy(domain))
        .catch((failure: unknown) =>
          machine.log.warn('cannot end a domain whose start failed; the next start finds it', {
            error: describeError(failure),
          }),
        );
      throw error;
    }
  }

  /** Supervises a running domain, and closes its forwarder when the domain ends. */
  #follow(machine: Machine, domain: Domain, publish?: Publish): Run {
    const run = superviseDomain(this.#runOptions(machine, domain));
    const forwarder = publish?.(run);
    if (forwarder === undefined) return run;
    const ended = run.ended.then(async (end) => {
      await forwarder.close();
      return end;
    });
    return { ...run, ended };
  }

  #runOptions({ record, directory, log }: Machine, domain: Domain): DomainRunOptions {
    const logged = (): Promise<DomainLog> => readDomainLog(this.#options.logDirectory, domain.name);
    return {
      ...this.#options,
      domain,
      directory,
      log,
      publishedPorts: record.ports.map(({ hostPort }) => hostPort),
      loggedReason: async () => {
        // After a restart of the host, the log contains the shutdown of the host, not an end of the guest.
        if (record.hostBootId !== (await hostBootId())) return undefined;
        return (await logged()).reason;
      },
      loggedWords: async () => (await logged()).words,
    };
  }

  /** Null: the domain does not run. A domain that ended while no agent ran is a run that has ended. */
  async find(machine: Machine): Promise<Run | null> {
    const { record, directory } = machine;
    const { instanceId, uuid } = record;
    const known = await domainsOf(this.#options.connection, { instanceId, uuid });
    const ours = known.find(({ mark, domain }) => domain.uuid === uuid && isOurs(mark, { instanceId, directory }));
    if (ours === undefined) return null;
    const seen = await lookAtDomain(this.#runOptions(machine, ours.domain));
    if (seen.running) return this.#adopt(machine, ours.domain);
    // A machine whose agent died has its end reported. A machine that was never started has no end.
    const ranWhenLastSeen = record.state === 'running' && !record.launching;
    const ranInBetween =
      record.launching &&
      record.state !== 'failed' &&
      (await hasRunSinceDefined(this.#options.connection, ours.domain));
    return ranWhenLastSeen || ranInBetween ? endedRun(seen.end) : null;
  }

  async #adopt(machine: Machine, domain: Domain): Promise<Run> {
    const { clock, bindAddress, network } = this.#options;
    const { record, log } = machine;
    if (record.network !== undefined) {
      return adoptPublished(machine, { clock, bindAddress }, this.#follow(machine, domain));
    }
    if (network === userNetwork) {
      // Ports are missing only if an agent died between the start and the publishing of the ports.
      if (record.launching) await publishByQemu(this.#options.connection, domain, { record, bindAddress });
      return this.#follow(machine, domain);
    }
    return this.#follow(machine, domain, (run) =>
      publishAgain({ record, bindAddress, target: run.currentAddress, clock, log }),
    );
  }
}
