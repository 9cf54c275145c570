// Creates a fake guest in the steps of a real one: ports, pull, clone, start. A failed creation leaves the guest `failed`;
// one that a closed driver interrupted stays as it stood, and the next driver continues it.

import { untilAborted } from '../../../base/concurrency/until-aborted.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { ImageCache } from '../../images/image-cache.ts';
import type { GuestSpec } from '../driver.ts';
import { ownCredentials } from '../own-credentials.ts';
import { bootsOn } from './guest-migration.ts';
import type { FakeGuest, FakeStep } from './fake-guest.ts';
import { type Hands, recordDamaged } from './hands.ts';
import { type PortRange, reservePorts } from './reserve-ports.ts';

export interface Creation {
  readonly hands: Hands;
  /** Absent: an image appears after the world's `pullMs`, once per host. */
  readonly images: ImageCache | undefined;
  readonly portRange: PortRange;
  readonly readRunDisk: (path: string) => Promise<Uint8Array>;
}

export async function createGuest(parts: Creation, spec: GuestSpec, signal: AbortSignal): Promise<void> {
  const { hands } = parts;
  const { instanceId } = spec;
  if (signal.aborted) throw aborted(instanceId);
  if (makeWay(hands, spec) === 'created') return;
  const guest = hands.world.addGuest(newGuest(hands.host, spec));
  try {
    await build(parts, { guest, spec, signal });
  } catch (error) {
    hands.throwIfClosed(instanceId); // as if the agent had died here: the next driver continues
    const thrown = signal.aborted ? aborted(instanceId) : asDriverError(error, instanceId);
    guest.state = 'failed';
    guest.reason = { code: thrown.code, message: thrown.message };
    guest.ports = [];
    hands.world.changed(guest);
    throw thrown;
  } finally {
    if (!hands.closing.aborted) hands.setProgress(instanceId, undefined);
  }
}

/** Deletes an older or unfinished guest of the instance. */
function makeWay({ world, host }: Hands, spec: GuestSpec): 'created' | 'free' {
  const { instanceId } = spec;
  const guest = world.guest(host, instanceId);
  if (guest === undefined) return 'free';
  if (guest.damaged) throw recordDamaged('create', instanceId);
  if (guest.incarnation > spec.incarnation) {
    throw new DriverError(
      'Internal',
      `cannot create incarnation ${spec.incarnation} of ${instanceId}: incarnation ${guest.incarnation} is here already`,
    );
  }
  if (guest.incarnation === spec.incarnation && guest.created) return 'created';
  world.deleteGuest(guest);
  return 'free';
}

interface Build {
  readonly guest: FakeGuest;
  readonly spec: GuestSpec;
  readonly signal: AbortSignal;
}

async function build(
  { hands, images, portRange, readRunDisk }: Creation,
  { guest, spec, signal }: Build,
): Promise<void> {
  const { world, host } = hands;
  guest.ports = reservePorts(hands, guest, { wanted: spec.ports, range: portRange });
  await step(hands, { guest, name: 'pull', signal }, async () => {
    hands.setProgress(spec.instanceId, `pulling ${spec.imageName}`);
    if (images !== undefined) await images.ensure(spec.imageName, spec.image, { signal, own: ownCredentials(spec) });
    else if (world.pulled.get(host)?.has(spec.imageName) !== true)
      await hands.pause(guest, world.latencies.pullMs, signal);
    hands.throwIfClosed(spec.instanceId);
    if (!signal.aborted) world.notePulled(host, spec.imageName);
  });
  if (spec.runDisk !== undefined) {
    const runDisk = await readRunDisk(spec.runDisk);
    hands.throwIfClosed(spec.instanceId);
    world.giveProgram(guest, runDisk);
  }
  await step(hands, { guest, name: 'clone', signal }, async () => {
    await hands.pause(guest, world.latencies.cloneMs, signal);
    if (spec.disk !== undefined) guest.boots = (await bootsOn(spec.disk)) ?? 0;
  });
  await step(hands, { guest, name: 'start', signal }, () => hands.pause(guest, world.latencies.startMs, signal));
  world.startGuest(guest);
}

interface Step {
  readonly guest: FakeGuest;
  readonly name: FakeStep;
  readonly signal: AbortSignal;
}

async function step(hands: Hands, { guest, name, signal }: Step, act: () => Promise<void>): Promise<void> {
  const startedAtMs = hands.clock.nowMs();
  for (const fault of guest.faults) {
    if (fault.do === 'fail' && fault.step === name) {
      throw new DriverError(fault.code, `cannot ${name} ${guest.instanceId}: a planted fault`);
    }
    if (fault.do === 'hang' && fault.step === name) await untilAborted(signal);
  }
  if (!signal.aborted) await act();
  hands.throwIfClosed(guest.instanceId);
  if (signal.aborted) throw aborted(guest.instanceId);
  guest.phases = [...guest.phases, { name, startedAtMs, durationMs: hands.clock.nowMs() - startedAtMs }];
  hands.world.changed(guest);
}

export function newGuest(host: string, spec: GuestSpec): Omit<FakeGuest, 'faults' | 'pending'> {
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
    ...(spec.resized === undefined ? {} : { resized: spec.resized }),
  };
}

const aborted = (instanceId: string): DriverError =>
  new DriverError('Aborted', `the creation of ${instanceId} was given up`);

const asDriverError = (error: unknown, instanceId: string): DriverError =>
  error instanceof DriverError
    ? error
    : new DriverError('Internal', `cannot create ${instanceId}: ${String(error)}`, error);
