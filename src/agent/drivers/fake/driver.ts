// A driver whose guests live in a FakeWorld: for the simulator, for tests, and for hosts without QEMU. It keeps the whole
// contract; nothing of it touches the machine, and all its waiting is done on the world's clock.

import { bootOffers } from '../../../api/resources/host.ts';
import type { Prng } from '../../../base/prng.ts';
import { firstOf } from '../../../base/concurrency/first-of.ts';
import type { ImageCache } from '../../images/image-cache.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { Driver, Guest, LogChunk } from '../driver.ts';
import { AbortSignals } from './abort-signals.ts';
import { type Creation, createGuest, newGuest } from './create-guest.ts';
import { type FakeGuest, fakeAddress } from './fake-guest.ts';
import { guestMigration } from './guest-migration.ts';
import { liveMigration } from './live-migration.ts';
import { guestVolumes } from './guest-volumes.ts';
import { Hands } from './hands.ts';
import type { PortRange } from './reserve-ports.ts';
import { openRunnerPort } from './runner-port.ts';
import { resizeGuest, setSuspended, startGuest, stopGuest } from './run-guest.ts';
import type { FakeWorld } from './world.ts';

export interface FakeDriverOptions {
  readonly world: FakeWorld;
  /** The host of the world that this driver acts on. */
  readonly host: string;
  readonly prng: Prng;
  /** Default: an image appears after the world's `pullMs`, once per host. */
  readonly images?: ImageCache;
  readonly portRange?: PortRange;
  /** All hosts are in this world, so guests can move live between them. */
  readonly movesLive?: true;
  /** Reads a guest's run disk. Default: guests with one cannot be created. */
  readonly readRunDisk?: (path: string) => Promise<Uint8Array>;
}

/** An object of plain functions, so that a caller can spread it and replace some of them. */
export function createFakeDriver(options: FakeDriverOptions): Driver {
  const hands = new Hands(options);
  const { world, host } = hands;
  const portRange = options.portRange ?? { first: 20_000, last: 29_999 };
  return {
    name: 'fake',
    fingerprint: () => Promise.resolve({ available: true, accelerator: 'none', version: '1', boots: [...bootOffers] }),
    recover: () => Promise.resolve(), // the world itself is looked at
    guests: () => world.guests(host).map((guest) => asGuest(guest, hands.progress(guest.instanceId))),
    watch: (listener, signal) => hands.watch(listener, signal),
    ...lifeOfGuests({ hands, images: options.images, portRange, readRunDisk: options.readRunDisk ?? noRunDisks }),
    readLog: async (instanceId, offset, limit) => readConsole(hands.here('read the log of', instanceId), offset, limit),
    suspension: {
      suspend: (instanceId) => hands.inLine(instanceId, () => setSuspended(hands, 'suspend', instanceId)),
      resume: (instanceId) => hands.inLine(instanceId, () => setSuspended(hands, 'resume', instanceId)),
    },
    volumes: guestVolumes(hands),
    migration: guestMigration(hands, options.images),
    ...(options.movesLive ? { live: liveMigration(hands, (spec) => world.addGuest(newGuest(host, spec))) } : {}),
    access: {
      openRunner: async (instanceId) => openRunnerPort(hands, instanceId),
      reach: async (instanceId, port) => assertListens(hands.here('reach', instanceId), port),
    },
    close: async () => hands.close(),
  };
}

const noRunDisks = (path: string): Promise<never> =>
  Promise.reject(new DriverError('NotPossible', `cannot read ${path}: this driver was given no way to read run disks`));

function lifeOfGuests(parts: Creation): Pick<Driver, 'create' | 'start' | 'stop' | 'remove' | 'resize'> {
  const { hands } = parts;
  const { world, host, clock } = hands;
  const creating = new AbortSignals();
  const stopping = new AbortSignals();
  return {
    create(spec, signal) {
      const own = creating.register(spec.instanceId);
      const over = firstOf(signal, own.signal, hands.closing);
      return hands
        .inLine(spec.instanceId, () => createGuest(parts, spec, over.signal))
        .finally(() => {
          over.forget();
          own.forget();
        });
    },
    start: (instanceId) => hands.inLine(instanceId, () => startGuest(hands, instanceId)),
    resize: (instanceId, { order }) => hands.inLine(instanceId, async () => resizeGuest(hands, instanceId, order)),
    async stop(instanceId, graceMs) {
      const own = stopping.register(instanceId);
      // This caller waits no longer for an earlier stop than its own grace period.
      const timer = clock.setTimer(graceMs, () => stopping.abortAll(instanceId));
      try {
        await hands.inLine(instanceId, async () => {
          const guest = world.guest(host, instanceId);
          if (guest !== undefined) await stopGuest(hands, guest, { graceMs, impatience: own.signal });
        });
      } finally {
        timer.cancel();
        own.forget();
      }
    },
    async remove(instanceId) {
      creating.abortAll(instanceId);
      stopping.abortAll(instanceId);
      await hands.inLine(instanceId, async () => {
        const guest = world.guest(host, instanceId);
        if (guest !== undefined) world.deleteGuest(guest);
      });
    },
  };
}

/** A guest that has booted listens at every port but this one: a check of it never passes. */
const closedPort = 9;

function assertListens({ instanceId, running, ready }: FakeGuest, port: number): void {
  if (!running || !ready || port === closedPort)
    throw new DriverError('NotPossible', `port ${port} of ${instanceId} accepts no connection`);
}

function readConsole(guest: FakeGuest, offset: number, limit: number): LogChunk {
  const bytes = new TextEncoder().encode(guest.console);
  return { offset, data: bytes.subarray(offset, offset + limit), size: bytes.length };
}

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
    ...(guest.handedOver === undefined ? {} : { handedOver: guest.handedOver }),
    ...(guest.resized === undefined ? {} : { resized: guest.resized }),
    ...(guest.startedAtMs === undefined ? {} : { startedAtMs: guest.startedAtMs }),
    ...(progress === undefined || guest.state !== 'preparing' ? {} : { progress }),
  };
}
