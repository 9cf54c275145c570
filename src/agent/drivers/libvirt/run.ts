// Supervises one domain until it ends. Each event leads to a new look at the domain, so a missed event is harmless; while libvirt is away,
// nothing is concluded. It never touches any other domain.
//
//   running ──► shutoff (shutdown, destroyed, crashed, ...) ──► ended
//      │ ▲
//      │ └── paused: no room on the disk (resumed when there is room), or suspended by a request (until it is resumed)
//      ├──► paused by an internal error of QEMU, or a watchdog: kept until the driver ends it ──► ended
//      └──► crashed: the guest panicked; libvirt keeps it until the driver ends it ──► ended

import type { Duplex } from 'node:stream';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import { connectTcp } from '../guest-life/ways-in/connect-tcp.ts';
import { type DiskSession, type DiskWatch, watchDisk } from '../guest-life/disk/disk-trouble.ts';
import { createForwards, type Forwards } from '../guest-life/ways-in/forwards.ts';
import type { GuestEnd, Run, RunEnd, Trouble } from '../guest-life/hypervisor.ts';
import { withWords } from '../guest-life/standing.ts';
import { Troubles } from '../guest-life/troubles.ts';
import { type SuspensionWatch, watchSuspension } from '../guest-life/watch-suspension.ts';
import { type Connection, isLost, type News } from './connection.ts';
import type { ShutoffReason } from './domain/domain-log.ts';
import { lookAtDomain } from './domain/domain-sight.ts';
import { describeDomain, standingNow } from './domain/domain-standing.ts';
import { domainUsage } from './domain/domain-usage.ts';
import { userNetwork } from './domain/domain-xml.ts';
import { type GuestAddress, guestAddress } from './guest-address.ts';
import type { Domain } from './libvirt.ts';
import { netdev } from './published-ports.ts';
import { createDomainVolumes } from './run-volumes.ts';
import { TakeOverLooks } from './take-over-looks.ts';

export interface DomainRunOptions {
  readonly connection: Connection;
  readonly domain: Domain;
  /** Of the guest's files, for people. */
  readonly directory: string;
  readonly network: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Ports of this host that QEMU publishes for the guest, on the user network. */
  readonly publishedPorts: readonly number[];
  /** How long a guest may take to release a volume. Default 10 s: Linux takes under one. */
  readonly detachPatienceMs?: number;
  /** How the last run ended, for the case that libvirt has forgotten it. */
  readonly loggedReason: () => Promise<ShutoffReason | undefined>;
  /** The last output of QEMU. */
  readonly loggedWords: () => Promise<string>;
}

export interface DomainRun extends Run {
  /** The guest's present address; undefined: unknown. */
  currentAddress(): Promise<string | undefined>;
}

const powerDownTimeoutMs = 5000; // it is one command to QEMU
const destroyTriesMax = 3;

export function superviseDomain(options: DomainRunOptions): DomainRun {
  return new DomainSupervision(options).run();
}

class DomainSupervision {
  readonly #options: DomainRunOptions;
  readonly #connection: Connection;
  readonly #domain: Domain;
  readonly #over = new AbortController();
  readonly #connected = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<RunEnd>();
  readonly #guestEnded = Promise.withResolvers<GuestEnd | Trouble>();
  readonly #troubles = new Troubles();
  readonly #disk: DiskWatch;
  readonly #forwards: Forwards;
  readonly #suspension: SuspensionWatch;
  readonly #address: GuestAddress;
  readonly #takeOver: TakeOverLooks;
  readonly #unwatch: () => void;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #ending: Promise<void> | undefined;

  constructor(options: DomainRunOptions) {
    const { connection, domain, directory, clock, prng, log } = options;
    const { signal } = this.#over;
    this.#options = options;
    this.#connection = connection;
    this.#domain = domain;
    const session = (): DiskSession => diskSession(connection, domain);
    this.#disk = watchDisk({ directory, session, clock, prng, log, signal });
    this.#disk.listen((trouble) => this.#troubles.disk(trouble));
    this.#forwards = createForwards({
      clock,
      netdev,
      monitor: (line) => connection.apart((libvirt) => libvirt.monitor(domain, line)),
      log,
    });
    this.#suspension = watchSuspension({
      look: async () => (await standingNow(connection, domain))?.guest === 'suspended',
      suspend: () => connection.apart((libvirt) => libvirt.suspend(domain)),
      resume: () => connection.apart((libvirt) => libvirt.resume(domain)),
      what: `domain ${domain.name}`,
      log,
    });
    this.#address = guestAddress({ ...options, signal });
    this.#takeOver = new TakeOverLooks({ clock, look: () => this.#lookQuietly(), signal });
    this.#unwatch = connection.watch(domain.uuid, (news) => this.#hear(news));
    this.#takeOver.begin();
    if (options.network === userNetwork)
      void this.#connected.promise.then(() => this.#forwards.closeLeft(options.publishedPorts));
  }

  run(): DomainRun {
    const { clock, detachPatienceMs } = this.#options;
    const [connection, domain] = [this.#connection, this.#domain];
    return {
      process: undefined, // libvirt identifies the domain by its uuid
      connected: this.#connected.promise,
      ended: this.#ended.promise,
      guestEnded: this.#guestEnded.promise,
      onTrouble: (listener) => this.#troubles.listen(listener),
      dial: (port) => this.#dial(port),
      ...(this.#options.network === userNetwork ? { reach: this.#forwards.reach } : {}),
      onAddress: (listener) => this.#address.onFound(listener),
      currentAddress: () => this.#address.current(),
      suspension: this.#suspension,
      volumes: createDomainVolumes({ connection, domain, clock, patienceMs: detachPatienceMs ?? 10_000 }),
      usage: () => connection.apart((libvirt) => domainUsage(libvirt, domain)),
      describe: () => describeDomain(connection, domain),
      alive: () => this.#isAlive(),
      end: () => this.#end(),
      powerDown: () => this.#powerDown(),
      detach: () => this.#finish({ cause: 'detached', detail: 'the driver has let go of it' }),
    };
  }

  #hear({ kind }: News): void {
    if (kind === 'disk-error-reported') this.#disk.reported();
    else if (kind === 'connected') this.#takeOver.begin();
    else this.#lookQuietly();
  }

  #lookQuietly(): void {
    this.#look().catch((error: unknown) =>
      this.#options.log.debug('cannot look at a guest; it is looked at when libvirt is back', {
        error: describeError(error),
      }),
    );
  }

  /** Resolves after a look that began after the call. Throws when libvirt is away. */
  #look(): Promise<void> {
    this.#lookAgain = true;
    this.#looking ??= this.#lookWhileAsked().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #lookWhileAsked(): Promise<void> {
    while (this.#lookAgain && !this.#over.signal.aborted) {
      this.#lookAgain = false;
      await this.#lookOnce();
    }
  }

  async #lookOnce(): Promise<void> {
    const seen = await lookAtDomain(this.#options);
    if (this.#over.signal.aborted) return;
    if (!seen.running) return this.#finish(seen.end);
    this.#connected.resolve();
    const { standing } = seen;
    this.#suspension.seen(standing.guest === 'suspended');
    this.#troubles.standing(standing.guest === 'running' ? standing.trouble : undefined);
    if (standing.guest === 'waiting-for-disk')
      void whyPaused(this.#connection, this.#domain).then((noRoom) => this.#disk.paused(noRoom));
    if (standing.guest === 'ended') this.#guestEnded.resolve(standing.how);
    if (standing.guest === 'halted')
      this.#guestEnded.resolve(withWords(standing.reason, await this.#options.loggedWords()));
  }

  #finish(end: RunEnd): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    this.#unwatch();
    this.#connected.resolve();
    this.#ended.resolve(end);
  }

  async #dial(port: number): Promise<Duplex> {
    const { name } = this.#domain;
    if (this.#options.network === userNetwork) return this.#forwards.dial(port);
    const host = await this.#address.current();
    if (host === undefined) throw new DriverError('NotPossible', `the address of domain ${name} is not known yet`);
    return connectTcp({ host, port }, `port ${port} of domain ${name}`);
  }

  async #isAlive(): Promise<boolean> {
    await this.#look();
    return !this.#over.signal.aborted;
  }

  async #powerDown(): Promise<void> {
    const limit = new AbortController();
    const pressed = this.#connection.apart((libvirt) => libvirt.shutdown(this.#domain)).then(() => true);
    const tooLate = sleep(this.#options.clock, powerDownTimeoutMs, limit.signal).then(() => false);
    try {
      const timely = await Promise.race([pressed, tooLate]);
      if (!timely) throw new Error(`QEMU of domain ${this.#domain.name} does not answer libvirt`);
    } finally {
      limit.abort();
      pressed.catch(() => {}); // reported above, or too late to matter
    }
  }

  #end(): Promise<void> {
    this.#ending ??= this.#endDomain().finally(() => {
      this.#ending = undefined;
    });
    return this.#ending;
  }

  async #endDomain(): Promise<void> {
    const domain = this.#domain;
    const { signal } = this.#over;
    for (let tries = 1; !signal.aborted; tries++) {
      try {
        await this.#connection.apart((libvirt) => libvirt.destroy(domain));
        await this.#look();
        if (signal.aborted || tries === destroyTriesMax) break;
      } catch (error) {
        // If the connection was lost, libvirt may have done it: the next look at the domain shows that.
        if (!isLost(error) || tries === destroyTriesMax) throw cannotEnd(domain, describeError(error));
      }
    }
    if (!signal.aborted) throw cannotEnd(domain, 'it runs on all the same');
  }
}

/** A run that was over before it was first looked at. */
export function endedRun(end: RunEnd): DomainRun {
  const nothing = async (): Promise<void> => {};
  return {
    process: undefined,
    connected: Promise.resolve(),
    ended: Promise.resolve(end),
    onTrouble: () => {},
    onAddress: () => {},
    currentAddress: async () => undefined,
    alive: async () => false,
    powerDown: nothing,
    end: nothing,
    detach: () => {},
  };
}

function diskSession(connection: Connection, domain: Domain): DiskSession {
  return {
    paused: async () => (await standingNow(connection, domain))?.guest === 'waiting-for-disk',
    resume: () => connection.apart((libvirt) => libvirt.resume(domain)),
  };
}

/** True: no room is left on the disk. A QEMU that does not answer counts as another error. */
async function whyPaused(connection: Connection, domain: Domain): Promise<boolean> {
  const disks = await connection.apart((libvirt) => libvirt.diskErrors(domain)).catch(() => []);
  return disks.some(({ noRoom }) => noRoom);
}

const cannotEnd = (domain: Domain, why: string): DriverError =>
  new DriverError(
    'HypervisorFailed',
    `cannot end domain ${domain.name}: ${why}; look at it with "virsh dominfo ${domain.name}", and at the log of libvirtd`,
  );
