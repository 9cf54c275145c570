// Starts a guest that was stopped, and stops one that runs: by its power button first, by force when its grace is over.

import { sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { asDriverError, inTheWay, noSuchGuest } from './errors.ts';
import type { Hands } from './hands.ts';
import { launch } from './launch.ts';
import { isDamaged } from './records.ts';
import { discardMemory, restoreGuest } from './saved-memory.ts';
import { abortAll, checkId, type Slot } from './slots.ts';

export async function startGuest(hands: Hands, instanceId: string): Promise<void> {
  checkId(instanceId);
  const { slots } = hands;
  const slot = slots.of(instanceId);
  await slots.inLine(slot, async () => {
    const record = slot.record;
    if (record === undefined) throw noSuchGuest('start', instanceId);
    if (slot.run !== undefined) return;
    if (isDamaged(record)) throw inTheWay('start', instanceId);
    if (!record.created || record.removing) {
      throw new DriverError('Internal', `cannot start ${instanceId}: it was never made whole; create it again`);
    }
    const { signal } = new AbortController();
    const leave = await hands.launching.enter(signal);
    try {
      if (slots.closed) throw new DriverError('Aborted', `${instanceId} is not started: the driver is closed`);
      await launch(hands, slot, { wanted: record.ports, signal });
    } catch (error) {
      if (slots.closed) throw error; // the next agent starts it, or finds it
      const told = asDriverError(error, `cannot start ${instanceId}`, hands.directory);
      slots.saveLater(slot, { state: 'failed', reason: { code: told.code, message: told.message } });
      throw told;
    } finally {
      leave();
    }
  });
}

export async function stopGuest(hands: Hands, instanceId: string, graceMs: number): Promise<void> {
  checkId(instanceId);
  const slot = hands.slots.get(instanceId);
  if (slot === undefined) return;
  const impatience = new AbortController();
  slot.stopping.add(impatience);
  // A stop under way is not waited for longer than this caller wants to wait. The guest's own grace begins at its power button: a slow disk,
  // which the request is recorded on first, must not use it up.
  const others = (): AbortController[] => [...slot.stopping].filter((each) => each !== impatience);
  const timer = hands.clock.setTimer(graceMs, () => abortAll(others()));
  try {
    await hands.slots.inLine(slot, () => stopNow(hands, slot, { graceMs, impatience: impatience.signal }));
  } finally {
    timer.cancel();
    slot.stopping.delete(impatience);
  }
}

async function stopNow(
  hands: Hands,
  slot: Slot,
  { graceMs, impatience }: { readonly graceMs: number; readonly impatience: AbortSignal },
): Promise<void> {
  const { slots, clock, log } = hands;
  if (slot.record?.saved === true) {
    if (graceMs > 0 && !impatience.aborted) await tryToRestore(hands, slot);
    if (slot.run === undefined) return discardMemory(hands, slot);
  }
  const { run } = slot;
  if (run === undefined) {
    // It was between two accelerators: the second start does not come any more.
    if (slot.record?.state === 'running' && slot.record.fallback?.pending === true)
      await slots.save(slot, { state: 'stopped', reason: undefined });
    return;
  }
  await slots.save(slot, { stopRequested: true });
  const askedAtMs = clock.monotonicMs();
  let inTime = true;
  if (graceMs > 0 && !impatience.aborted) {
    // One that stands still hears no button.
    await run.suspension?.resume().catch((error: unknown) =>
      log.warn('cannot let a suspended guest go on to power off', {
        instance: slot.instanceId,
        error: describeError(error),
      }),
    );
    await run.powerDown().catch((error: unknown) =>
      log.warn('cannot press the power button of a guest', {
        instance: slot.instanceId,
        error: describeError(error),
      }),
    );
    const ended = new AbortController();
    inTime = await Promise.race([
      run.ended.then(() => true),
      sleep(clock, graceMs, AbortSignal.any([impatience, ended.signal])).then(() => false),
    ]);
    ended.abort();
  }
  if (slots.closed)
    throw new DriverError('Aborted', `the stop of ${slot.instanceId} was given up: the driver is closed`);
  if (slot.run === run) {
    if (!inTime) await slots.save(slot, { stopForcedAfterMs: clock.monotonicMs() - askedAtMs });
    await run.end();
  }
  await slot.settled;
}

/** A guest whose memory is in a file needs it to power off. What cannot be read is lost, as the memory of a guest that is ended by force. */
async function tryToRestore(hands: Hands, slot: Slot): Promise<void> {
  try {
    await restoreGuest(hands, slot);
  } catch (error) {
    if (hands.slots.closed) throw error;
    hands.log.warn('a guest that is suspended to disk cannot go on to power off; it is ended', {
      instance: slot.instanceId,
      error: describeError(error),
    });
  }
}
