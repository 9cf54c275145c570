// A driver whose guests live in a FakeWorld: for the simulator, for tests, and where QEMU cannot be had. It keeps the
// whole contract; nothing of it touches the machine, and all its waiting is done on the world's clock.

import type { GuestPort } from '../../../api/agent-protocol.ts';
import { sleep } from '../../../base/clock.ts';
import { firstOf } from '../../../base/work/first-of.ts';
import type { Prng } from '../../../base/prng.ts';
import type { ImageCache } from '../../images/image-cache.ts';
import { growPretended, type PretendedVolume, snapshotPretended } from '../../volumes/memory-volume-files.ts';
import { type Driver, type Guest, type GuestSpec, type GuestVolume, type GuestVolumes, stopForced } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { type FakeGuest, type FakeStep, type FakeWorld, fakeAddress, slowness } from './world.ts';

export interface FakeDriverOptions {
  readonly world: FakeWorld;
  /** Which host of the world these hands are on. */
  readonly host: string;
  readonly prng: Prng;
  /** Default: images come out of nothing after the world's `pullMs`, once per host. */
  readonly images?: ImageCache;
  readonly portRange?: { readonly first: number; readonly last: number };
}

export function createFakeDriver(options: FakeDriverOptions): Driver {
  const { world, host } = options;
  const { clock } = world;
  const range = options.portRange ?? { first: 20_000, last: 29_999 };
  const lines = new Map<string, Promise<void>>(); // operations on one guest follow one another
  const creating = new Map<string, Set<AbortController>>(); // those under way or in line
  const stopping = new Map<string, Set<AbortController>>();
  const progress = new Map<string, string>();
  const listeners = new Set<(instanceId: string) => void>();
  const closing = new AbortController();

  const notify = (instanceId: string): void => {
    for (const listener of listeners) listener(instanceId);
  };
  const unhook = world.onChange(host, notify);

  const inLine = <Result>(instanceId: string, act: () => Promise<Result>): Promise<Result> => {
    const result = (lines.get(instanceId) ?? Promise.resolve()).then(() => {
      throwIfClosed(instanceId);
      return act();
    });
    const line = result.then(
      () => {},
      () => {}, // whoever asked is told
    );
    lines.set(instanceId, line);
    void line.then(() => {
      if (lines.get(instanceId) === line) lines.delete(instanceId);
    });
    return result;
  };

  /** A closed driver is a dead agent: it must not touch the world again, wherever it stood. */
  const throwIfClosed = (instanceId: string): void => {
    if (closing.signal.aborted)
      throw new DriverError('Aborted', `nothing more is done to ${instanceId}: the driver is closed`);
  };

  const setProgress = (instanceId: string, text: string | undefined): void => {
    if (text === undefined) progress.delete(instanceId);
    else progress.set(instanceId, text);
    notify(instanceId);
  };

  /** Up to a quarter more or less, so that guests do not march in step. */
  const spread = (durationMs: number): number =>
    durationMs === 0 ? 0 : Math.max(1, Math.round((durationMs * (75 + options.prng.below(51))) / 100));

  const create = (spec: GuestSpec, signal: AbortSignal): Promise<void> => {
    const own = register(creating, spec.instanceId);
    const over = firstOf(signal, own.signal, closing.signal);
    return inLine(spec.instanceId, () => createNow(spec, over.signal)).finally(() => {
      over.forget();
      own.forget();
    });
  };

  const createNow = async (spec: GuestSpec, signal: AbortSignal): Promise<void> => {
    const { instanceId } = spec;
    if (signal.aborted) throw aborted(instanceId);
    let guest = world.guest(host, instanceId);
    if (guest?.damaged) throw inTheWay('create', instanceId);
    if (guest !== undefined && guest.incarnation > spec.incarnation) {
      throw new DriverError(
        'Internal',
        `cannot create incarnation ${spec.incarnation} of ${instanceId}: incarnation ${guest.incarnation} is here already`,
      );
    }
    if (guest !== undefined && guest.incarnation < spec.incarnation) {
      world.deleteGuest(guest);
      guest = undefined;
    }
    if (guest?.created) return;
    if (guest !== undefined) world.deleteGuest(guest); // begun and not ended: nothing of it is worth keeping
    guest = world.addGuest(newGuest(host, spec));
    try {
      await build(guest, spec, signal);
    } catch (error) {
      throwIfClosed(instanceId); // as if the agent had died here: the next one goes on
      const told = signal.aborted ? aborted(instanceId) : asDriverError(error, instanceId);
      guest.state = 'failed';
      guest.reason = { code: told.code, message: told.message };
      guest.ports = [];
      world.changed(guest);
      throw told;
    } finally {
      if (!closing.signal.aborted) setProgress(instanceId, undefined);
    }
  };

  const build = async (guest: FakeGuest, spec: GuestSpec, signal: AbortSignal): Promise<void> => {
    guest.ports = reservePorts(guest, spec.ports);
    await step(guest, 'pull', signal, async () => {
      setProgress(spec.instanceId, `pulling ${spec.imageName}`);
      if (options.images !== undefined) await options.images.ensure(spec.imageName, spec.image, { signal });
      else if (world.pulled.get(host)?.has(spec.imageName) !== true) await pause(guest, world.latencies.pullMs, signal);
      throwIfClosed(spec.instanceId);
      if (!signal.aborted) world.notePulled(host, spec.imageName);
    });
    await step(guest, 'clone', signal, () => pause(guest, world.latencies.cloneMs, signal));
    await step(guest, 'start', signal, () => pause(guest, world.latencies.startMs, signal));
    world.startGuest(guest);
  };

  const step = async (
    guest: FakeGuest,
    name: FakeStep,
    signal: AbortSignal,
    act: () => Promise<void>,
  ): Promise<void> => {
    const startedAtMs = clock.nowMs();
    for (const fault of guest.faults) {
      if (fault.do === 'fail' && fault.step === name) {
        throw new DriverError(fault.code, `cannot ${name} ${guest.instanceId}: a planted fault`);
      }
      if (fault.do === 'hang' && fault.step === name) await untilAborted(signal);
    }
    if (!signal.aborted) await act();
    throwIfClosed(guest.instanceId);
    if (signal.aborted) throw aborted(guest.instanceId);
    guest.phases = [...guest.phases, { name, startedAtMs, durationMs: clock.nowMs() - startedAtMs }];
    world.changed(guest);
  };

  const pause = (guest: FakeGuest, durationMs: number, signal: AbortSignal): Promise<void> =>
    sleep(clock, spread(durationMs * slowness(guest)), signal);

  const reservePorts = (guest: FakeGuest, wanted: readonly GuestPort[]): GuestPort[] => {
    const taken = new Set<number>();
    const isFree = (port: number): boolean => !taken.has(port) && !world.portTaken(host, port);
    return wanted.map((port) => {
      let { hostPort } = port;
      if (hostPort === 0) {
        hostPort = range.first;
        while (hostPort <= range.last && !isFree(hostPort)) hostPort++;
      }
      if (hostPort > range.last && port.hostPort === 0) {
        throw new DriverError(
          'PortInUse',
          `cannot publish port ${port.guestPort} of ${guest.instanceId}: no port from ${range.first} to ${range.last} is free`,
        );
      }
      if (!isFree(hostPort)) {
        throw new DriverError(
          'PortInUse',
          `cannot publish port ${port.guestPort} of ${guest.instanceId}: port ${hostPort} is in use`,
        );
      }
      taken.add(hostPort);
      return { ...port, hostPort };
    });
  };

  const stopNow = async (guest: FakeGuest, graceMs: number, impatience: AbortSignal): Promise<void> => {
    if (!guest.running || guest.damaged) return;
    guest.stopRequested = true;
    world.changed(guest);
    const askedAtMs = clock.monotonicMs();
    if (graceMs > 0 && !impatience.aborted) {
      const ended = new AbortController();
      const unwatch = world.onChange(host, () => {
        if (!guest.running) ended.abort();
      });
      world.setSuspended(guest, false); // one that stands still hears no button
      world.pressPowerButton(guest);
      const over = firstOf(ended.signal, impatience, closing.signal);
      await sleep(clock, graceMs, over.signal);
      over.forget();
      unwatch();
      throwIfClosed(guest.instanceId);
    }
    if (guest.running && graceMs > 0) guest.reason = stopForced(clock.monotonicMs() - askedAtMs);
    world.endGuest(guest, 'killed');
  };

  const setSuspended = (verb: 'suspend' | 'resume', instanceId: string): Promise<void> =>
    inLine(instanceId, async () => {
      const guest = here(verb, instanceId);
      if (guest.damaged) throw inTheWay(verb, instanceId);
      await sleep(clock, spread(world.latencies.suspendMs), closing.signal);
      throwIfClosed(instanceId);
      if (!guest.running) throw new DriverError('NotPossible', `cannot ${verb} ${instanceId}: it does not run`);
      world.setSuspended(guest, verb === 'suspend');
    });

  const setVolumesNow = async (
    guest: FakeGuest,
    wanted: readonly GuestVolume[],
    signal: AbortSignal,
  ): Promise<void> => {
    const { instanceId } = guest;
    const had = guest.volumes ?? [];
    if (JSON.stringify(had) === JSON.stringify(wanted)) return;
    if (guest.running) {
      const over = firstOf(signal, closing.signal);
      await sleep(clock, spread(world.latencies.startMs), over.signal);
      over.forget();
      throwIfClosed(instanceId);
      if (signal.aborted) throw new DriverError('Aborted', `the change of the volumes of ${instanceId} was given up`);
    }
    const kept = had.filter(({ volumeId }) => !wanted.some((each) => each.volumeId === volumeId));
    const holds = guest.running && kept.length > 0 && guest.faults.some((fault) => fault.do === 'hold-volumes');
    world.setVolumes(guest, holds ? [...wanted, ...kept] : wanted);
    if (!holds) return;
    throw new DriverError('NotPossible', `${instanceId} does not let go of volume ${kept[0]?.name}: a planted fault`);
  };

  /** What a running guest has open. */
  const opened = (verb: string, instanceId: string, volumeId: string): PretendedVolume => {
    const guest = here(`${verb} a volume of`, instanceId);
    const volume = world.volumeDisk(host).get(volumeId);
    const has = guest.running && guest.volumes?.some((each) => each.volumeId === volumeId);
    if (has && !guest.damaged && volume !== undefined) return volume;
    throw new DriverError('NotPossible', `cannot ${verb} volume ${volumeId}: ${instanceId} does not have it open`);
  };

  const volumes: GuestVolumes = {
    set: (instanceId, wanted, signal) =>
      inLine(instanceId, async () => {
        const guest = here('change the volumes of', instanceId);
        if (guest.damaged) throw inTheWay('change the volumes of', instanceId);
        await setVolumesNow(guest, wanted, signal);
      }),
    grow: (instanceId, volumeId, sizeBytes) =>
      inLine(instanceId, async () => growPretended(opened('grow', instanceId, volumeId), sizeBytes)),
    snapshot: (instanceId, volumeId, act, name) =>
      inLine(instanceId, async () =>
        snapshotPretended(opened('snapshot', instanceId, volumeId), { act, name, nowMs: clock.nowMs() }),
      ),
  };

  const here = (verb: string, instanceId: string): FakeGuest => {
    const guest = world.guest(host, instanceId);
    if (guest === undefined)
      throw new DriverError('NoSuchGuest', `cannot ${verb} ${instanceId}: there is no such guest on this host`);
    return guest;
  };

  return {
    name: 'fake',
    fingerprint: () => Promise.resolve({ available: true, accelerator: 'none', version: '1' }),
    recover: () => Promise.resolve(), // it looks at the world itself
    guests: () => world.guests(host).map((guest) => asGuest(guest, progress.get(guest.instanceId))),
    watch(listener, signal) {
      if (signal.aborted) return;
      const each = (instanceId: string): void => listener(instanceId); // its own, should one function watch twice
      listeners.add(each);
      signal.addEventListener('abort', () => listeners.delete(each), { once: true });
    },
    create,
    start: (instanceId) =>
      inLine(instanceId, async () => {
        const guest = here('start', instanceId);
        if (guest.damaged) throw inTheWay('start', instanceId);
        if (guest.running) return;
        if (!guest.created)
          throw new DriverError('Internal', `cannot start ${instanceId}: it was never made whole; create it again`);
        const startedAtMs = clock.nowMs();
        await sleep(clock, spread(world.latencies.startMs * slowness(guest)), closing.signal);
        throwIfClosed(instanceId);
        guest.phases = [
          ...guest.phases.filter((phase) => phase.name !== 'start' && phase.name !== 'boot'),
          { name: 'start', startedAtMs, durationMs: clock.nowMs() - startedAtMs },
        ];
        world.startGuest(guest);
      }),
    async stop(instanceId, graceMs) {
      const own = register(stopping, instanceId);
      // A stop under way is not waited for longer than this caller wants to wait.
      const timer = clock.setTimer(graceMs, () => abortAll(stopping, instanceId));
      try {
        await inLine(instanceId, async () => {
          const guest = world.guest(host, instanceId);
          if (guest !== undefined) await stopNow(guest, graceMs, own.signal);
        });
      } finally {
        timer.cancel();
        own.forget();
      }
    },
    async remove(instanceId) {
      abortAll(creating, instanceId);
      abortAll(stopping, instanceId);
      await inLine(instanceId, async () => {
        const guest = world.guest(host, instanceId);
        if (guest !== undefined) world.deleteGuest(guest);
      });
    },
    async readLog(instanceId, offset, limit) {
      const bytes = new TextEncoder().encode(here('read the log of', instanceId).console);
      return { offset, data: bytes.subarray(offset, offset + limit), size: bytes.length };
    },
    suspension: {
      suspend: (instanceId) => setSuspended('suspend', instanceId),
      resume: (instanceId) => setSuspended('resume', instanceId),
    },
    volumes,
    async close() {
      closing.abort();
      unhook();
      listeners.clear();
    },
  };
}

function newGuest(host: string, spec: GuestSpec): Omit<FakeGuest, 'faults' | 'pending'> {
  return {
    host,
    instanceId: spec.instanceId,
    incarnation: spec.incarnation,
    imageName: spec.imageName,
    state: 'preparing',
    running: false,
    created: false,
    stopRequested: false,
    ready: false,
    boots: 0,
    ports: [],
    phases: [],
    console: '',
    ...(spec.volumes === undefined ? {} : { volumes: spec.volumes }),
  };
}

const inTheWay = (verb: string, instanceId: string): DriverError =>
  new DriverError('Internal', `cannot ${verb} ${instanceId}: the record of the guest that is here is damaged`);

function asGuest(guest: FakeGuest, progress: string | undefined): Guest {
  if (guest.damaged) {
    return {
      instanceId: guest.instanceId,
      incarnation: 0,
      state: guest.running ? 'running' : 'failed',
      damaged: true,
      reason: { code: 'RecordDamaged', message: 'what the host knew of this guest cannot be read' },
      ready: false,
      ports: [],
      phases: [],
    };
  }
  return {
    instanceId: guest.instanceId,
    incarnation: guest.incarnation,
    state: guest.state,
    ready: guest.ready,
    ports: guest.ports,
    phases: guest.phases,
    accelerator: 'none',
    ...(guest.volumes === undefined ? {} : { volumes: guest.volumes.map(({ volumeId }) => volumeId) }),
    ...(guest.reason === undefined ? {} : { reason: guest.reason }),
    ...(guest.ready ? { address: fakeAddress } : {}),
    ...(guest.startedAtMs === undefined ? {} : { startedAtMs: guest.startedAtMs }),
    ...(progress === undefined || guest.state !== 'preparing' ? {} : { progress }),
  };
}

const aborted = (instanceId: string): DriverError =>
  new DriverError('Aborted', `the creation of ${instanceId} was given up`);

const asDriverError = (error: unknown, instanceId: string): DriverError =>
  error instanceof DriverError
    ? error
    : new DriverError('Internal', `cannot create ${instanceId}: ${String(error)}`, error);

/** A new abort signal among those of this instance, until it is forgotten. */
function register(
  all: Map<string, Set<AbortController>>,
  instanceId: string,
): { readonly signal: AbortSignal; readonly forget: () => void } {
  const controller = new AbortController();
  const ofInstance = all.get(instanceId) ?? new Set();
  all.set(instanceId, ofInstance.add(controller));
  const forget = (): void => {
    ofInstance.delete(controller);
    if (ofInstance.size === 0 && all.get(instanceId) === ofInstance) all.delete(instanceId);
  };
  return { signal: controller.signal, forget };
}

function abortAll(all: ReadonlyMap<string, ReadonlySet<AbortController>>, instanceId: string): void {
  for (const controller of all.get(instanceId) ?? []) controller.abort();
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
