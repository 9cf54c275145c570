// Live moves of fake guests, between the hosts of one world. The memory of a fake guest is its number of boots and its readiness.

import { sleep } from '../../../base/clock.ts';
import { firstOf } from '../../../base/concurrency/first-of.ts';
import type { GuestSpec } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestLiveMigration, LiveSend } from '../driver.ts';
import type { FakeGuest } from './fake-guest.ts';
import type { Hands } from './hands.ts';

export function liveMigration(hands: Hands, newGuest: (spec: GuestSpec) => FakeGuest): GuestLiveMigration {
  const { world, host } = hands;
  return {
    kind: async () => ({ machine: 'fake', cpu: 'fake', network: 'bridge' }),
    async describe(instanceId) {
      const { ready, volumes = [] } = running(hands, 'move', instanceId);
      const disks = volumes.map(({ volumeId, name }) => {
        const sizeBytes = world.volumeDisk(host).get(volumeId)?.sizeBytes ?? 0;
        return { name: volumeId, sizeBytes, label: name };
      });
      return { parts: ['fake'], disks, memoryMiB: 64, ready };
    },
    async expect(spec, machine, signal) {
      const { instanceId } = spec;
      await sleep(hands.clock, hands.spread(world.latencies.cloneMs), signal);
      hands.throwIfClosed(instanceId);
      if (signal.aborted) throw aborted(instanceId);
      if (machine.parts.join() !== 'fake') throw new DriverError('NotPossible', `${instanceId} is another machine`);
      const before = world.guest(host, instanceId);
      if (before !== undefined) world.deleteGuest(before);
      world.expectGuest(newGuest(spec));
    },
    connect: (instanceId) =>
      Promise.reject(new DriverError('NotPossible', `${instanceId} is a fake guest, which arrives through its world`)),
    async received(instanceId, signal) {
      const arrived = new AbortController();
      const look = (): void => {
        const guest = world.guest(host, instanceId);
        if (guest?.frozen !== 'expected') arrived.abort();
      };
      const unwatch = world.onChange(host, look);
      look();
      const over = firstOf(arrived.signal, signal, hands.closing);
      if (!over.signal.aborted)
        await new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve()));
      over.forget();
      unwatch();
      hands.throwIfClosed(instanceId);
      if (world.guest(host, instanceId)?.frozen !== 'arrived') throw aborted(instanceId);
    },
    send: (instanceId, call, signal) => send(hands, { instanceId, call }, signal),
    async sent(instanceId, id) {
      const { frozen, handedOver } = hands.intact('look at', instanceId);
      return frozen === 'handed-over' && handedOver?.id === id;
    },
    async takeBack(instanceId) {
      const guest = hands.intact('take back', instanceId);
      await sleep(hands.clock, hands.spread(world.latencies.suspendMs), hands.closing);
      hands.throwIfClosed(instanceId);
      if (guest.handedOver !== undefined) world.thaw(guest);
    },
  };
}

/** Either agent may crash at each step. */
async function send(
  hands: Hands,
  { instanceId, call }: { readonly instanceId: string; readonly call: LiveSend },
  signal: AbortSignal,
): Promise<number> {
  const { world, host } = hands;
  const wait = async (): Promise<void> => {
    await sleep(hands.clock, hands.spread(world.latencies.cloneMs), signal);
    hands.throwIfClosed(instanceId);
  };
  const guest = running(hands, 'send', instanceId);
  for (const bytes of [1, 2]) {
    await wait();
    if (signal.aborted) throw aborted(instanceId);
    call.onProgress({ bytes, ofBytes: 2 });
  }
  if (!guest.running) throw new DriverError('NotPossible', `${instanceId} has ended while it was sent`);
  call.assertUnderWay();
  world.freeze(guest, call.move);
  const stillSinceMs = hands.clock.monotonicMs();
  await wait();
  const target = world
    .guests()
    .find((each) => each.instanceId === instanceId && each.host !== host && each.frozen === 'expected');
  if (target === undefined || signal.aborted || guest.frozen === undefined) {
    // Nothing has arrived, and the source knows it: the guest keeps running, as a real one does.
    if (guest.frozen !== undefined) world.thaw(guest);
    throw new DriverError('HypervisorFailed', `no machine waits for ${instanceId}`);
  }
  sendVolumes(hands, target);
  world.arrive(target, guest);
  await wait();
  if (signal.aborted) throw aborted(instanceId);
  return hands.clock.monotonicMs() - stillSinceMs;
}

/** As a real guest, with what is on them now and without their snapshots. */
function sendVolumes({ world, host }: Hands, { volumes = [] }: FakeGuest): void {
  for (const { volumeId, received } of volumes) {
    const volume = world.volumeDisk(host).get(volumeId);
    if (volume !== undefined) received?.write(new TextEncoder().encode(JSON.stringify({ ...volume, snapshots: [] })));
  }
}

function running(hands: Hands, verb: string, instanceId: string): FakeGuest {
  const guest = hands.intact(verb, instanceId);
  if (!guest.running || guest.state !== 'running')
    throw new DriverError('NotPossible', `cannot ${verb} ${instanceId}: it does not run`);
  return guest;
}

const aborted = (instanceId: string): DriverError =>
  new DriverError('Aborted', `the move of ${instanceId} was given up`);
