// Supervises the QEMU process of one guest until it ends. The process is signalled only after it was identified as this guest's QEMU.
//
//   connecting ─ greeted ─► connected ─ connection closed ─► connecting ─► ...
//        └──────────────── the process is gone ──────────────────► ended

import { join } from 'node:path';
import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { isRecord } from '../../../base/is-record.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import { bySocket } from '../../host/connect-socket.ts';
import { DriverError } from '../../host/driver-error.ts';
import { socketFolder } from '../../host/guest-user.ts';
import { processUsage, tapTraffic } from '../../host/process-usage.ts';
import { isAlive, type ProcessIdentity } from '../../host/processes.ts';
import type { GuestCounters } from '../../../api/guests/guest-usage.ts';
import type { GuestVolume } from '../driver.ts';
import { blockTraffic } from '../guest-life/disk/block-traffic.ts';
import { type DiskSession, type DiskWatch, watchDisk } from '../guest-life/disk/disk-trouble.ts';
import type { GuestEnd, Run, RunEnd, RunLive, RunMemory, Trouble } from '../guest-life/hypervisor.ts';
import { type Standing, withWords } from '../guest-life/standing.ts';
import { Troubles } from '../guest-life/troubles.ts';
import { type SuspensionWatch, watchSuspension } from '../guest-life/watch-suspension.ts';
import { tailText } from '../guest-life/ways-in/console-log.ts';
import { createForwards, type Forwards } from '../guest-life/ways-in/forwards.ts';
import { askStanding, describeQemu, hasNoRoom } from './ask-qemu.ts';
import { createLiveRun } from './live/live-run.ts';
import { createMemoryFile } from './live/memory-file.ts';
import { qemuFiles } from './command-line.ts';
import { complaints } from './complaints.ts';
import { killGuestProcess } from './processes.ts';
import { connectQmp, type Qmp, type QmpEvent } from './qmp.ts';
import { createQemuVolumes, type QemuVolumes } from './run-volumes.ts';

export interface RunOptions {
  /** The guest's directory, without symbolic links. */
  readonly directory: string;
  readonly uuid: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Ports of this host that QEMU publishes for the guest; undefined: the guest is not on the user network. */
  readonly publishedPorts: readonly number[] | undefined;
  /** The guest's interface on this host; absent: the guest is on the user network, whose traffic is not counted. */
  readonly tap?: string;
  /** How long a guest may take to release a volume. Default 10 s: Linux takes under one. */
  readonly detachPatienceMs?: number;
  /** Called before QEMU is told to open a volume. Default: nothing. */
  readonly giveVolume?: (volume: GuestVolume) => Promise<void>;
  /** That volumes are attached to. Absent: the root bus. */
  readonly volumeBus?: string | undefined;
}

interface QemuProcess {
  readonly hypervisor: ProcessIdentity;
  /** How the process ended, where this agent is its parent. */
  readonly exit: () => string | undefined;
  /** Of a process that an earlier agent started: its published ports. Other forwards of that agent may be left over. */
  readonly left?: readonly number[] | undefined;
}

/** Milliseconds. */
const announcements = { initial: 50, max: 550, rounds: 5, step: 100 };
const qmpTimeoutMs = 5000;
const quitGraceMs = 2000;
export const killGraceMs = 10_000;

export function superviseQemu(options: RunOptions, process: QemuProcess): Run {
  return new QemuSupervision(options, process).run();
}

class QemuSupervision {
  readonly #options: RunOptions;
  readonly #hypervisor: ProcessIdentity;
  readonly #exit: () => string | undefined;
  readonly #forwards: Forwards;
  readonly #volumes: QemuVolumes;
  readonly #disk: DiskWatch;
  readonly #suspension: SuspensionWatch;
  readonly #live: RunLive;
  readonly #memory: RunMemory;
  readonly #troubles = new Troubles();
  readonly #detached = new AbortController();
  /** Aborts when the supervision ends, for whatever reason. */
  readonly #over = new AbortController();
  readonly #connected = Promise.withResolvers<void>();
  readonly #guestEnded = Promise.withResolvers<GuestEnd | Trouble>();
  readonly #ended: Promise<RunEnd>;
  #stoppedAtMs: number | undefined;
  #qmp: Qmp | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: RunOptions, { hypervisor, exit, left }: QemuProcess) {
    const { directory, clock, prng, log } = options;
    this.#options = options;
    this.#hypervisor = hypervisor;
    this.#exit = exit;
    this.#forwards = createForwards({ netdev: 'net0', monitor: (line) => this.#monitor(line), clock, log });
    if (left !== undefined) void this.#connected.promise.then(() => this.#forwards.closeLeft(left));
    this.#volumes = createQemuVolumes({
      session: () => this.#session(),
      clock,
      patienceMs: options.detachPatienceMs ?? 10_000,
      bus: options.volumeBus,
      give: options.giveVolume ?? (() => Promise.resolve()),
    });
    this.#disk = watchDisk({
      directory,
      session: () => this.#qmp && diskSession(this.#qmp),
      clock,
      prng,
      log,
      signal: AbortSignal.any([this.#detached.signal, this.#over.signal]),
    });
    this.#disk.listen((trouble) => this.#troubles.disk(trouble));
    this.#suspension = watchSuspension({
      look: async () => (await this.#see(this.#session())).guest === 'suspended',
      suspend: async () => void (await this.#session().execute('stop')),
      // Continues only what a request suspended: a guest that waits for room on its disk continues when there is room.
      resume: async () => {
        await this.#session().execute('cont');
        // Announces a guest that has moved here to switches. If QEMU refuses, they learn its location from the packets that the guest sends.
        await this.#session()
          .execute('announce-self', announcements)
          .catch(() => {});
      },
      what: `QEMU (pid ${hypervisor.pid})`,
      log,
    });
    this.#live = createLiveRun({
      ...{ directory, clock, uuid: options.uuid },
      session: () => this.#session(),
      stoppedAtMs: () => this.#stoppedAtMs,
      look: async () => {
        const { guest } = await this.#see(this.#session());
        if (guest !== 'ended' && guest !== 'halted') this.#suspension.seen(guest === 'suspended');
      },
    });
    this.#memory = createMemoryFile({
      ...{ directory, clock },
      session: () => this.#session(),
      look: () => this.#suspension.lookSoon(),
      giveUp: async () => void (await this.#live.settle('over')),
    });
    this.#ended = this.#supervise();
    const over = (): void => this.#finish();
    this.#ended.then(over, over);
  }

  run(): Run {
    return {
      process: this.#hypervisor,
      connected: this.#connected.promise,
      ended: this.#ended,
      guestEnded: this.#guestEnded.promise,
      onTrouble: (listener) => this.#troubles.listen(listener),
      alive: () => isAlive(this.#hypervisor),
      usage: () => this.#usage(),
      describe: () => describeQemu(this.#hypervisor, this.#qmp),
      end: () => this.#end(),
      dial: this.#forwards.dial,
      reach: this.#forwards.reach,
      suspension: this.#suspension,
      volumes: this.#volumes,
      live: this.#live,
      memory: this.#memory,
      powerDown: () => this.#powerDown(),
      detach: () => this.#detach(),
    };
  }

  /** Throws while there is no connection. */
  #session(): Qmp {
    const { pid } = this.#hypervisor;
    if (this.#qmp === undefined) throw new DriverError('NotPossible', `QEMU (pid ${pid}) is not connected now`);
    return this.#qmp;
  }

  async #monitor(line: string): Promise<string> {
    return String(await this.#session().execute('human-monitor-command', { 'command-line': line }));
  }

  async #supervise(): Promise<RunEnd> {
    const { clock, prng, log } = this.#options;
    const { pid } = this.#hypervisor;
    for (let attempt = 0; !this.#detached.signal.aborted; attempt++) {
      if (!(await isAlive(this.#hypervisor))) {
        return { cause: 'other', detail: `QEMU (pid ${pid}) ${this.#exit() ?? 'has gone'}` };
      }
      try {
        const session = await this.#connect();
        this.#qmp = session;
        await this.#greet(session);
        attempt = 0;
        this.#connected.resolve();
        await session.closed;
      } catch (error) {
        log.debug('no QMP connection yet', { pid, error: describeError(error) });
        this.#qmp?.close();
      }
      this.#qmp = undefined;
      await sleep(clock, backoffMs(attempt, { delayMsMin: 4, delayMsMax: 500 }, prng), this.#detached.signal);
    }
    return { cause: 'detached', detail: 'the driver has let go of it' };
  }

  async #connect(): Promise<Qmp> {
    const { directory, clock } = this.#options;
    const path = join(directory, await socketFolder(directory), qemuFiles.qmp);
    return bySocket(path, (short) =>
      connectQmp({ path: short, clock, timeoutMs: qmpTimeoutMs, onEvent: (event) => this.#onEvent(event) }),
    );
  }

  async #greet(session: Qmp): Promise<void> {
    const { directory, uuid } = this.#options;
    const said = await session.execute('query-uuid');
    if (!isRecord(said) || said['UUID'] !== uuid) throw new Error(`QEMU in ${directory} is another guest`);
    const { guest } = await this.#see(session);
    if (guest !== 'ended' && guest !== 'halted') this.#suspension.seen(guest === 'suspended');
    if (guest === 'waiting-for-disk') this.#disk.paused(await hasNoRoom(session)); // paused while there was no connection
  }

  /** Asks QEMU for the state of the guest, and passes on what it means. */
  async #see(session: Qmp): Promise<Standing> {
    const standing = await askStanding(session);
    this.#troubles.standing(standing.guest === 'running' ? standing.trouble : undefined);
    if (standing.guest === 'ended') this.#guestEnded.resolve(standing.how);
    if (standing.guest === 'halted')
      this.#guestEnded.resolve(withWords(standing.reason, await lastWords(this.#options.directory)));
    return standing;
  }

  #onEvent(event: QmpEvent): void {
    const { name, data } = event;
    this.#options.log.debug('QEMU event', { event: name, ...data });
    this.#volumes.onEvent(event);
    if (name === 'STOP') this.#stoppedAtMs = this.#options.clock.monotonicMs();
    if (name === 'SHUTDOWN' && data['reason'] === 'guest-shutdown') this.#guestEnded.resolve('guest-shutdown');
    else if (name === 'GUEST_PANICKED') this.#guestEnded.resolve('guest-panic');
    else if (['STOP', 'RESUME', 'SUSPEND', 'WAKEUP'].includes(name)) this.#suspension.lookSoon();
    else if (name === 'BLOCK_IO_ERROR' && data['action'] === 'stop') this.#disk.paused(data['nospace'] === true);
    else if (name === 'BLOCK_IO_ERROR' && data['action'] === 'report') this.#disk.reported();
  }

  async #usage(): Promise<GuestCounters | undefined> {
    const { tap } = this.#options;
    const [process, traffic, disks] = await Promise.all([
      processUsage(this.#hypervisor.pid),
      tap === undefined ? undefined : tapTraffic(tap),
      this.#session().execute('query-blockstats'),
    ]);
    return process && { ...process, ...blockTraffic(disks), ...traffic };
  }

  #finish(): void {
    this.#over.abort();
    this.#connected.resolve();
  }

  async #powerDown(): Promise<void> {
    if (this.#qmp === undefined) throw new Error(`QEMU (pid ${this.#hypervisor.pid}) is not connected`);
    await this.#qmp.execute('system_powerdown');
  }

  #detach(): void {
    this.#detached.abort();
    this.#qmp?.close();
  }

  #end(): Promise<void> {
    this.#ending ??= this.#endProcess().finally(() => {
      this.#ending = undefined;
    });
    return this.#ending;
  }

  async #endProcess(): Promise<void> {
    const { directory, uuid } = this.#options;
    if (this.#qmp !== undefined) {
      this.#qmp.execute('quit').catch(() => {}); // it may hang, or be gone before it answers: what counts is whether it ends
      if (await this.#endedWithin(quitGraceMs)) return;
    }
    await killGuestProcess(this.#hypervisor, { directory, uuid });
    if (await this.#endedWithin(killGraceMs)) return;
    throw doesNotEnd(this.#hypervisor, directory);
  }

  async #endedWithin(limitMs: number): Promise<boolean> {
    const limit = new AbortController();
    const result = await Promise.race([
      this.#ended.then(() => true),
      sleep(this.#options.clock, limitMs, limit.signal).then(() => false),
    ]);
    limit.abort();
    return result;
  }
}

export function doesNotEnd({ pid }: ProcessIdentity, directory: string): DriverError {
  return new DriverError(
    'HypervisorFailed',
    `QEMU (pid ${pid}) did not end within ${killGraceMs} ms of SIGKILL; look for a hanging disk below ${directory}`,
  );
}

/** What QEMU last wrote to its standard error, as one line. */
export async function lastWords(directory: string): Promise<string> {
  return complaints(await tailText(join(directory, qemuFiles.stderr), 4000).catch(() => ''));
}

function diskSession(session: Qmp): DiskSession {
  return {
    paused: async () => (await askStanding(session)).guest === 'waiting-for-disk',
    resume: async () => void (await session.execute('cont')),
  };
}
