// Starts, stops, suspends and resumes a fake guest that was created before.

import { sleep } from '../../../base/clock.ts';
import { firstOf } from '../../../base/concurrency/first-of.ts';
import { DriverError } from '../../host/driver-error.ts';
import { stopForced } from '../driver.ts';
import type { FakeGuest } from './fake-guest.ts';
import type { Hands } from './hands.ts';

export async function startGuest(hands: Hands, instanceId: string): Promise<void> {
  const { world, clock } = hands;
  const guest = hands.intact('start', instanceId);
  if (guest.running) return;
  if (!guest.created)
    throw new DriverError('Internal', `cannot start ${instanceId}: it was never made whole; create it again`);
  const startedAtMs = clock.nowMs();
  await hands.pause(guest, world.latencies.startMs, hands.closing);
  hands.throwIfClosed(instanceId);
  guest.phases = [
    ...guest.phases.filter((phase) => phase.name !== 'start' && phase.name !== 'boot'),
    { name: 'start', startedAtMs, durationMs: clock.nowMs() - startedAtMs },
  ];
  world.startGuest(guest);
}

/** Waits for the guest's own end at most `graceMs`, and no longer when `impatience` aborts. */
export async function stopGuest(
  hands: Hands,
  guest: FakeGuest,
  { graceMs, impatience }: { readonly graceMs: number; readonly impatience: AbortSignal },
): Promise<void> {
  const { world, clock } = hands;
  if ((!guest.running && guest.frozen === undefined) || guest.damaged) return;
  guest.stopRequested = true;
  world.changed(guest);
  const askedAtMs = clock.monotonicMs();
  if (graceMs > 0 && !impatience.aborted) {
    const ended = new AbortController();
    const unwatch = world.onChange(hands.host, () => {
      if (!guest.running) ended.abort();
    });
    world.setSuspended(guest, false); // a suspended guest does not notice the power button
    world.pressPowerButton(guest);
    const over = firstOf(ended.signal, impatience, hands.closing);
    await sleep(clock, graceMs, over.signal);
    over.forget();
    unwatch();
    hands.throwIfClosed(guest.instanceId);
  }
  if (guest.running && graceMs > 0) guest.reason = stopForced(clock.monotonicMs() - askedAtMs);
  world.endGuest(guest, 'killed');
}

export async function setSuspended(hands: Hands, verb: 'suspend' | 'resume', instanceId: string): Promise<void> {
  const { world, clock } = hands;
  const guest = hands.intact(verb, instanceId);
  await sleep(clock, hands.spread(world.latencies.suspendMs), hands.closing);
  hands.throwIfClosed(instanceId);
  if (!guest.running && guest.frozen === undefined)
    throw new DriverError('NotPossible', `cannot ${verb} ${instanceId}: it does not run`);
  world.setSuspended(guest, verb === 'suspend');
}

/** A fake guest has no amounts: only the order is kept. */
export function resizeGuest(hands: Hands, instanceId: string, order: number): void {
  const guest = hands.intact('resize', instanceId);
  if (guest.running || !guest.created)
    throw new DriverError('NotPossible', `cannot resize ${instanceId}: it runs, or was never made whole`);
  guest.resized = order;
  hands.world.changed(guest);
}
