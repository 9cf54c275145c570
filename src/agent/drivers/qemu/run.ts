// One QEMU process of one guest, from launch or adoption to its end. It lives in its own session, so that neither the
// agent's death nor a closed terminal reaches it, and it is never signalled unless it is surely ours.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../../../base/is-record.ts';
import { backoffMs } from '../../../base/backoff.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import type { GuestVolume } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { askStanding, describeQemu, hasNoRoom } from './ask-qemu.ts';
import { qemuFiles } from './command-line.ts';
import { complaints } from './complaints.ts';
import { bySocket } from '../../host/connect-socket.ts';
import { tailText } from '../guest-life/ways-in/console-log.ts';
import { socketFolder } from '../../host/guest-user.ts';
import type { GuestEnd, Run, RunEnd, Trouble } from '../guest-life/hypervisor.ts';
import { toolEnvironment } from '../../host/run-tool.ts';
import { type Standing, withWords } from '../guest-life/standing.ts';
import { Troubles } from '../guest-life/troubles.ts';
import { type DiskSession, watchDisk } from '../guest-life/disk/disk-trouble.ts';
import { createForwards } from '../guest-life/ways-in/forwards.ts';
import { watchSuspension } from '../guest-life/watch-suspension.ts';
import { killGuestProcess } from './processes.ts';
import { identify, isAlive, type ProcessIdentity } from '../../host/processes.ts';
import { connectQmp, type Qmp, type QmpEvent } from './qmp.ts';
import { createQemuVolumes } from './run-volumes.ts';

export interface RunOptions {
  /** The guest's directory, without symbolic links. */
  readonly directory: string;
  readonly uuid: string;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Ports of this host that QEMU publishes for the guest; undefined: it is not on the user network. */
  readonly publishedPorts: readonly number[] | undefined;
  /** How long a guest is given to let go of a volume. Default 10 s: Linux takes under one. */
  readonly detachPatienceMs?: number;
  /** Before QEMU is told to open it. Default: nothing is done. */
  readonly giveVolume?: (volume: GuestVolume) => Promise<void>;
}

const qmpTimeoutMs = 5000;
const quitGraceMs = 2000;
export const killGraceMs = 10_000;

/** Starts QEMU. `onProcess` runs as soon as there is a process, before anything else is asked of it. */
export async function launchRun(
  options: RunOptions,
  call: {
    readonly program: string;
    readonly arguments: readonly string[];
    readonly onProcess: (process: ProcessIdentity) => Promise<void>;
  },
): Promise<Run> {
  await rm(join(options.directory, await socketFolder(options.directory), qemuFiles.qmp), { force: true });
  const stderrPath = join(options.directory, qemuFiles.stderr);
  await rm(stderrPath, { force: true });
  const stderr = await open(stderrPath, 'a', 0o600);
  let exit: string | undefined;
  try {
    const child = spawn(call.program, [...call.arguments], {
      cwd: options.directory,
      detached: true,
      stdio: ['ignore', 'ignore', stderr.fd],
      env: { ...toolEnvironment },
    });
    child.unref();
    child.on('exit', (code, signal) => {
      exit = signal === null ? `exited with code ${code}` : `was ended by ${signal}`;
    });
    await once(child, 'spawn');
    if (child.pid === undefined) throw new DriverError('HypervisorFailed', `cannot start ${call.program}`);
    // One that has ended already is supervised all the same: that is where its end is told.
    const hypervisor = (await identify(child.pid)) ?? { pid: child.pid, startTicks: 0 };
    const run = superviseRun(options, hypervisor, () => exit);
    try {
      await call.onProcess(hypervisor);
    } catch (error) {
      await run.end(); // a process that nobody wrote down must not live
      throw error;
    }
    return run;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new DriverError(
        'HypervisorFailed',
        `cannot start a guest: ${call.program} is not installed; install the package qemu-system-x86`,
        error,
      );
    }
    throw error;
  } finally {
    await stderr.close();
  }
}

/** Takes over a process that an earlier run of the agent started. */
export function adoptRun(options: RunOptions, hypervisor: ProcessIdentity): Run {
  return superviseRun(options, hypervisor, () => undefined, options.publishedPorts);
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

/** `left`: there was an agent before, and of its ways in these may stay. */
function superviseRun(
  options: RunOptions,
  hypervisor: ProcessIdentity,
  exit: () => string | undefined,
  left?: readonly number[],
): Run {
  const { directory, uuid, clock, log } = options;
  const detached = new AbortController();
  const connected = Promise.withResolvers<void>();
  let qmp: Qmp | undefined;
  const guestEnded = Promise.withResolvers<GuestEnd | Trouble>();
  const troubles = new Troubles();

  const session = (): Qmp => {
    if (qmp === undefined) throw new DriverError('NotPossible', `QEMU (pid ${hypervisor.pid}) is not connected now`);
    return qmp;
  };
  const forwards = createForwards({
    netdev: 'net0',
    monitor: async (line) => String(await session().execute('human-monitor-command', { 'command-line': line })),
    log,
  });
  if (left !== undefined) void connected.promise.then(() => forwards.closeLeft(left));
  const volumes = createQemuVolumes({
    session,
    clock,
    patienceMs: options.detachPatienceMs ?? 10_000,
    give: options.giveVolume ?? (() => Promise.resolve()),
  });
  const over = new AbortController(); // also when nobody let go of it
  const disk = watchDisk({
    directory,
    session: () => qmp && diskSession(qmp),
    clock,
    prng: options.prng,
    log,
    signal: AbortSignal.any([detached.signal, over.signal]),
  });

  disk.listen((trouble) => troubles.disk(trouble));
  /** Looks how it stands, and passes on what that means. */
  const see = async (asked: Qmp): Promise<Standing> => {
    const standing = await askStanding(asked);
    troubles.standing(standing.guest === 'running' ? standing.trouble : undefined);
    if (standing.guest === 'ended') guestEnded.resolve(standing.how);
    if (standing.guest === 'halted') guestEnded.resolve(withWords(standing.reason, await lastWords(directory)));
    return standing;
  };
  const suspension = watchSuspension({
    look: async () => (await see(session())).guest === 'suspended',
    suspend: async () => void (await session().execute('stop')),
    // Only what somebody stopped: a guest that waits for room on its disk goes on when there is some.
    resume: async () => void (await session().execute('cont')),
    what: `QEMU (pid ${hypervisor.pid})`,
    log,
  });

  const onEvent = (event: QmpEvent): void => {
    log.debug('QEMU event', { event: event.name, ...event.data });
    volumes.onEvent(event);
    if (event.name === 'SHUTDOWN' && event.data['reason'] === 'guest-shutdown') guestEnded.resolve('guest-shutdown');
    else if (event.name === 'GUEST_PANICKED') guestEnded.resolve('guest-panic');
    else if (['STOP', 'RESUME', 'SUSPEND', 'WAKEUP'].includes(event.name)) suspension.lookSoon();
    else if (event.name === 'BLOCK_IO_ERROR' && event.data['action'] === 'stop')
      disk.paused(event.data['nospace'] === true);
    else if (event.name === 'BLOCK_IO_ERROR' && event.data['action'] === 'report') disk.reported();
  };

  const connect = async (): Promise<Qmp> => {
    const path = join(directory, await socketFolder(directory), qemuFiles.qmp);
    return bySocket(path, (short) => connectQmp({ path: short, clock, timeoutMs: qmpTimeoutMs, onEvent }));
  };

  const greet = async (session: Qmp): Promise<void> => {
    const said = await session.execute('query-uuid');
    if (!isRecord(said) || said['UUID'] !== uuid) throw new Error(`QEMU in ${directory} is another guest`);
    const { guest } = await see(session);
    if (guest !== 'ended' && guest !== 'halted') suspension.seen(guest === 'suspended');
    if (guest === 'waiting-for-disk') disk.paused(await hasNoRoom(session)); // while there was no connection
  };

  const supervise = async (): Promise<RunEnd> => {
    for (let attempt = 0; !detached.signal.aborted; attempt++) {
      if (!(await isAlive(hypervisor))) {
        return { cause: 'other', detail: `QEMU (pid ${hypervisor.pid}) ${exit() ?? 'has gone'}` };
      }
      try {
        const session = await connect();
        qmp = session;
        await greet(session);
        attempt = 0;
        connected.resolve();
        await session.closed;
      } catch (error) {
        log.debug('no QMP connection yet', { pid: hypervisor.pid, error: describeError(error) });
        qmp?.close();
      }
      qmp = undefined;
      await sleep(clock, backoffMs(attempt, { delayMsMin: 4, delayMsMax: 500 }, options.prng), detached.signal);
    }
    return { cause: 'detached', detail: 'the driver has let go of it' };
  };

  const ended = supervise();
  const noMore = (): void => {
    over.abort();
    connected.resolve();
  };
  ended.then(noMore, noMore);

  let ending: Promise<void> | undefined;
  const end = (): Promise<void> => {
    ending ??= endProcess().finally(() => {
      ending = undefined;
    });
    return ending;
  };
  const endProcess = async (): Promise<void> => {
    if (qmp !== undefined) {
      qmp.execute('quit').catch(() => {}); // it may hang, or be gone before it answers: what counts is whether it ends
      if (await endedWithin(quitGraceMs)) return;
    }
    await killGuestProcess(hypervisor, { directory, uuid });
    if (await endedWithin(killGraceMs)) return;
    throw doesNotEnd(hypervisor, directory);
  };
  const endedWithin = async (limitMs: number): Promise<boolean> => {
    const limit = new AbortController();
    const result = await Promise.race([ended.then(() => true), sleep(clock, limitMs, limit.signal).then(() => false)]);
    limit.abort();
    return result;
  };

  return {
    process: hypervisor,
    connected: connected.promise,
    ended,
    guestEnded: guestEnded.promise,
    onTrouble: (listener) => troubles.listen(listener),
    alive: () => isAlive(hypervisor),
    describe: () => describeQemu(hypervisor, qmp),
    end,
    dial: forwards.dial,
    suspension,
    volumes,
    async powerDown() {
      if (qmp === undefined) throw new Error(`QEMU (pid ${hypervisor.pid}) is not connected`);
      await qmp.execute('system_powerdown');
    },
    detach() {
      detached.abort();
      qmp?.close();
    },
  };
}

function diskSession(session: Qmp): DiskSession {
  return {
    paused: async () => (await askStanding(session)).guest === 'waiting-for-disk',
    resume: async () => void (await session.execute('cont')),
  };
}
