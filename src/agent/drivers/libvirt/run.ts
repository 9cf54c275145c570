// One run of one domain, from its start or its adoption to its end. It hears of events and then looks at the domain anew, so nothing hangs
// on an event that was missed; while libvirt is away it concludes nothing. It never touches a domain but its own.
//
//   running ──► shutoff (shutdown, destroyed, crashed, ...) ──► ended
//      │ ▲
//      │ └── paused: no room on the disk (resumed when there is), or somebody's wish (told, and left so until it is resumed)
//      ├──► paused by an internal error of QEMU, or a watchdog: it is kept until whoever was told ends it ──► ended
//      └──► crashed: the guest panicked; it is kept so by libvirt until whoever was told ends it ──► ended

import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { DriverError } from '../../host/driver-error.ts';
import { connectTcp } from '../guest-life/ways-in/connect-tcp.ts';
import { type DiskSession, watchDisk } from '../guest-life/disk/disk-trouble.ts';
import { createForwards } from '../guest-life/ways-in/forwards.ts';
import type { GuestEnd, Run, RunEnd, Trouble } from '../guest-life/hypervisor.ts';
import { type Standing, withWords } from '../guest-life/standing.ts';
import { Troubles } from '../guest-life/troubles.ts';
import { watchSuspension } from '../guest-life/watch-suspension.ts';
import { type Connection, isLost } from './connection.ts';
import type { ShutoffReason } from './domain-log.ts';
import { describeDomain, standingNow } from './domain-standing.ts';
import { userNetwork } from './domain-xml.ts';
import { guestAddress } from './guest-address.ts';
import type { Domain } from './libvirt.ts';
import { netdev } from './published-ports.ts';
import { createDomainVolumes } from './run-volumes.ts';

export interface DomainRunOptions {
  readonly connection: Connection;
  readonly domain: Domain;
  /** Of its files, for people. */
  readonly directory: string;
  readonly network: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Ports of this host that QEMU publishes for the guest, on the user network. */
  readonly publishedPorts: readonly number[];
  /** How long a guest is given to let go of a volume. Default 10 s: Linux takes under one. */
  readonly detachPatienceMs?: number;
  /** How the last run ended, where libvirt has forgotten it. */
  readonly loggedReason: () => Promise<ShutoffReason | undefined>;
  /** What QEMU last said. */
  readonly loggedWords: () => Promise<string>;
}

/** What a run of libvirt's has beside what every run has. */
export interface DomainRun extends Run {
  /** The guest's address as it is now; undefined: nobody knows. */
  currentAddress(): Promise<string | undefined>;
}

/** A domain that runs, or does not. */
export type DomainSight =
  | { readonly running: true; readonly standing: Standing }
  | { readonly running: false; readonly end: RunEnd };

const powerDownTimeoutMs = 5000; // it is one command to QEMU
const destroyTriesMax = 3;
const takeOverMsMin = 500;
/** Of the pauses, which double, so twice this in all: libvirt tries for 30 s to reach a QEMU whose process is still there. */
const takeOverMsMax = 32_000;

export function superviseDomain(options: DomainRunOptions): DomainRun {
  const { connection, domain, directory, clock, prng, log } = options;
  const over = new AbortController();
  const connected = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<RunEnd>();
  const guestEnded = Promise.withResolvers<GuestEnd | Trouble>();
  const troubles = new Troubles();
  let looking: Promise<void> | undefined;
  let again = false;

  const disk = watchDisk({
    directory,
    session: () => diskSession(connection, domain),
    clock,
    prng,
    log,
    signal: over.signal,
  });
  disk.listen((trouble) => troubles.disk(trouble));
  const forwards = createForwards({
    netdev,
    monitor: (line) => connection.apart((libvirt) => libvirt.monitor(domain, line)),
    log,
  });
  const suspension = watchSuspension({
    look: async () => (await standingNow(connection, domain))?.guest === 'suspended',
    suspend: () => connection.apart((libvirt) => libvirt.suspend(domain)),
    resume: () => connection.apart((libvirt) => libvirt.resume(domain)),
    what: `domain ${domain.name}`,
    log,
  });
  const address = guestAddress({ ...options, signal: over.signal });

  const finish = (end: RunEnd): void => {
    if (over.signal.aborted) return;
    over.abort();
    unwatch();
    connected.resolve();
    ended.resolve(end);
  };

  const lookOnce = async (): Promise<void> => {
    const seen = await lookAtDomain(options);
    if (over.signal.aborted) return;
    if (!seen.running) return finish(seen.end);
    connected.resolve();
    const { standing } = seen;
    suspension.seen(standing.guest === 'suspended');
    troubles.standing(standing.guest === 'running' ? standing.trouble : undefined);
    if (standing.guest === 'waiting-for-disk') void whyPaused(connection, domain).then((noRoom) => disk.paused(noRoom));
    if (standing.guest === 'ended') guestEnded.resolve(standing.how);
    if (standing.guest === 'halted') guestEnded.resolve(withWords(standing.reason, await options.loggedWords()));
  };
  /** Resolves when it was looked at after the call. Throws when libvirt is away. */
  const look = (): Promise<void> => {
    again = true;
    looking ??= (async () => {
      while (again && !over.signal.aborted) {
        again = false;
        await lookOnce();
      }
    })().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const lookQuietly = (): void => {
    look().catch((error: unknown) =>
      log.debug('cannot look at a guest; it is looked at when libvirt is back', { error: describeError(error) }),
    );
  };
  let takingOver = new AbortController();
  /** libvirt tells of no end of a domain that it loses while it takes it over itself, after its own start. */
  const lookWhileTakenOver = async (): Promise<void> => {
    takingOver.abort();
    takingOver = new AbortController();
    const signal = AbortSignal.any([takingOver.signal, over.signal]);
    for (let delayMs = 0; delayMs <= takeOverMsMax && !signal.aborted; delayMs = 2 * delayMs || takeOverMsMin) {
      await sleep(clock, delayMs, signal);
      if (!signal.aborted) lookQuietly();
    }
  };
  const unwatch = connection.watch(domain.uuid, ({ kind }) => {
    if (kind === 'disk-error-reported') disk.reported();
    else if (kind === 'connected') void lookWhileTakenOver();
    else lookQuietly();
  });
  void lookWhileTakenOver();
  if (options.network === userNetwork) void connected.promise.then(() => forwards.closeLeft(options.publishedPorts));

  let ending: Promise<void> | undefined;
  const end = (): Promise<void> => {
    ending ??= endDomain().finally(() => {
      ending = undefined;
    });
    return ending;
  };
  const endDomain = async (): Promise<void> => {
    for (let tries = 1; !over.signal.aborted; tries++) {
      try {
        await connection.apart((libvirt) => libvirt.destroy(domain));
        await look();
        if (over.signal.aborted || tries === destroyTriesMax) break;
      } catch (error) {
        // When the connection was lost, libvirt may have done it or not: what is there now says.
        if (!isLost(error) || tries === destroyTriesMax) throw cannotEnd(domain, describeError(error));
      }
    }
    if (!over.signal.aborted) throw cannotEnd(domain, 'it runs on all the same');
  };

  return {
    process: undefined, // libvirt knows it by its uuid
    connected: connected.promise,
    ended: ended.promise,
    guestEnded: guestEnded.promise,
    onTrouble: (listener) => troubles.listen(listener),
    async dial(port) {
      if (options.network === userNetwork) return forwards.dial(port);
      const host = await address.current();
      if (host === undefined)
        throw new DriverError('NotPossible', `nobody knows the address of domain ${domain.name} yet`);
      return connectTcp({ host, port }, `port ${port} of domain ${domain.name}`);
    },
    onAddress: (listener) => address.onFound(listener),
    currentAddress: () => address.current(),
    suspension,
    volumes: createDomainVolumes({ connection, domain, clock, patienceMs: options.detachPatienceMs ?? 10_000 }),
    describe: () => describeDomain(connection, domain),
    async alive() {
      await look();
      return !over.signal.aborted;
    },
    end,
    async powerDown() {
      const limit = new AbortController();
      const pressed = connection.apart((libvirt) => libvirt.shutdown(domain)).then(() => true);
      try {
        const timely = await Promise.race([pressed, sleep(clock, powerDownTimeoutMs, limit.signal).then(() => false)]);
        if (!timely) throw new Error(`QEMU of domain ${domain.name} does not answer libvirt`);
      } finally {
        limit.abort();
        pressed.catch(() => {}); // was told, or is too late to matter
      }
    },
    detach: () => finish({ cause: 'detached', detail: 'the driver has let go of it' }),
  };
}

/** A run that was over before anyone looked. */
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

/** Throws when libvirt is away. */
export async function lookAtDomain({
  connection,
  domain,
  loggedReason,
}: Pick<DomainRunOptions, 'connection' | 'domain' | 'loggedReason'>): Promise<DomainSight> {
  const standing = await standingNow(connection, domain);
  if (standing === undefined) {
    return { running: false, end: { cause: 'other', detail: `somebody made libvirt forget domain ${domain.name}` } };
  }
  if (standing.guest !== 'shutoff') return { running: true, standing };
  const { why } = standing;
  return { running: false, end: endOf(why === 'unknown' ? ((await loggedReason()) ?? why) : why) };
}

function endOf(reason: ShutoffReason): RunEnd {
  if (reason === 'shutdown') return { cause: 'guest-shutdown', detail: 'the guest powered itself off' };
  return { cause: 'other', detail: details[reason] };
}

const details: Readonly<Record<Exclude<ShutoffReason, 'shutdown'>, string>> = {
  unknown: 'QEMU has gone, and libvirt does not know why: it was started anew since',
  destroyed: 'libvirt ended QEMU, because somebody asked it to',
  crashed: 'QEMU was killed, or crashed',
  migrated: 'somebody moved the domain to another host',
  saved: 'somebody saved the domain into a file; "virsh managedsave-remove" drops it',
  failed: 'QEMU could not be started',
  'from snapshot': 'somebody set the domain back to a snapshot that does not run',
  daemon: 'libvirt could not go on with QEMU, and ended it',
};

function diskSession(connection: Connection, domain: Domain): DiskSession {
  return {
    paused: async () => (await standingNow(connection, domain))?.guest === 'waiting-for-disk',
    resume: () => connection.apart((libvirt) => libvirt.resume(domain)),
  };
}

/** Whether because no room is left. A QEMU that does not answer does not say: then it is an error like any other. */
async function whyPaused(connection: Connection, domain: Domain): Promise<boolean> {
  const disks = await connection.apart((libvirt) => libvirt.diskErrors(domain)).catch(() => []);
  return disks.some(({ noRoom }) => noRoom);
}

const cannotEnd = (domain: Domain, why: string): DriverError =>
  new DriverError(
    'HypervisorFailed',
    `cannot end domain ${domain.name}: ${why}; look at it with "virsh dominfo ${domain.name}", and at the log of libvirtd`,
  );
