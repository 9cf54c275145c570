// Starts the machine of a guest whose files are there. What is about to happen is in the record before it happens, so that an agent that
// dies in between leaves a machine that the next one finds; and no guest ever has two.

import { join } from 'node:path';
import type { GuestPort } from '../../../api/agent-protocol.ts';
import { sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { consoleSize } from './ways-in/console-log.ts';
import { asDriverError, noSuchGuest, throwIfAborted } from './errors.ts';
import { hasFallenBack } from './fall-back.ts';
import { followRun } from './follow-run.ts';
import { guestFiles } from './guest-files.ts';
import type { Hands } from './hands.ts';
import { hostBootIdOf } from './host-boot.ts';
import type { Run } from './hypervisor.ts';
import { phase } from './records.ts';
import type { Slot } from './slots.ts';

const launchTimeoutMs = 30_000; // it answers within 100 ms; this is for a host that swaps
const portTriesMax = 5;

/** Ports that the driver chose (`hostPort` 0 in `wanted`) are chosen again when someone else was faster. */
export async function launch(
  hands: Hands,
  slot: Slot,
  { wanted, signal }: { readonly wanted: readonly GuestPort[]; readonly signal: AbortSignal },
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await launchOnce(hands, slot, signal);
    } catch (error) {
      const isOurChoice = slot.record?.ports.some(
        (port, i) => wanted[i]?.hostPort === 0 && describeError(error).includes(`:${port.hostPort}/`),
      );
      const taken = error instanceof DriverError && error.code === 'PortInUse';
      if (!taken || isOurChoice !== true || tries === portTriesMax) throw error;
      await hands.slots.save(slot, { ports: await hands.ports.reserve(slot.instanceId, wanted) });
    }
  }
}

/** Completes a fallback: when it is this guest's turn, and unless something else was wished of it meanwhile. */
export function launchLater(hands: Hands, slot: Slot): void {
  const { slots, log } = hands;
  const { instanceId } = slot;
  const launchNow = async (): Promise<void> => {
    const { record } = slot;
    if (record?.fallback?.pending !== true || slot.run !== undefined || record.removing || record.state !== 'running')
      return;
    const { signal } = new AbortController();
    const leave = await hands.launching.enter(signal);
    try {
      await launch(hands, slot, { wanted: record.ports, signal });
    } catch (error) {
      if (slots.closed) throw error; // the next agent starts it, or finds it
      const { code, message } = asDriverError(error, `cannot start ${instanceId} under TCG`, hands.directory);
      await slots.save(slot, { state: 'failed', reason: { code, message } });
    } finally {
      leave();
    }
  };
  slots.inLine(slot, launchNow).catch((error: unknown) => {
    if (!slots.closed) log.error('cannot complete a fallback', { instance: instanceId, error: describeError(error) });
  });
}

async function launchOnce(hands: Hands, slot: Slot, signal: AbortSignal): Promise<void> {
  const { clock, slots } = hands;
  if (slot.record === undefined) throw noSuchGuest('start', slot.instanceId);
  const directory = await hands.directoryOf(slot.instanceId);
  const fallenBack =
    slot.record.fallback !== undefined && hasFallenBack(hands, slot.record, await hostBootIdOf(hands.hypervisor));
  const accelerator = fallenBack ? 'tcg' : await hands.hypervisor.chosenAccelerator();
  const startedAtMs = clock.nowMs();
  const orphan = await hands.hypervisor.find(await hands.machineOf(slot.record), true); // of an agent that died before it wrote down where it is
  if (orphan === null) {
    const { created, state } = slot.record;
    await slots.save(slot, {
      // Of an agent that dies here the next one starts it: it is not the end of this run that it ended before.
      ...(created && (state === 'exited' || state === 'failed') ? { state: 'stopped', reason: undefined } : {}),
      accelerator,
      startedAtMs,
      launching: true,
      process: undefined,
      hostBootId: await hostBootIdOf(hands.hypervisor),
      ...(fallenBack ? {} : { fallback: undefined }),
      bootOffset: await consoleSize(join(directory, guestFiles.console)),
      ready: false,
      address: slot.record.network?.kind === 'nat' ? slot.record.network.address : undefined,
      stopRequested: false,
      stopForcedAfterMs: undefined,
      guestEnd: undefined,
      halt: undefined,
      ports: slot.record.ports.map((port) => ({ ...port, hostAddress: hands.bindAddress })),
    });
  }
  const record = slot.record;
  if (signal.aborted) orphan?.detach(); // it is looked after since it was found
  throwIfAborted(signal, slot.instanceId);
  const machine = await hands.machineOf(record);
  const run =
    orphan ??
    (await hands.hypervisor.start(machine, {
      accelerator,
      bindAddress: hands.bindAddress,
      onProcess: (process) => slots.save(slot, { process }),
    }));
  const giveUp = (): void => {
    if (slots.closed) return run.detach(); // the next agent finds it
    run
      .end()
      .catch((error: unknown) =>
        hands.log.error('a machine does not end', { instance: slot.instanceId, error: describeError(error) }),
      );
  };
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await untilConnected(hands, slot, run);
    throwIfAborted(signal, slot.instanceId);
    if (!(await run.alive())) {
      const end = await run.ended;
      // A guest that has ended by itself did run: that is told as any other end.
      if (end.cause !== 'guest-shutdown') throw await hands.hypervisor.startError(machine, end, hands.bindAddress);
    }
    slot.run = run; // whoever hears that it runs may want to get in at once
    await slots.save(slot, {
      process: run.process,
      launching: false,
      created: true,
      state: 'running',
      reason: undefined,
      stopRequested: false,
      stopForcedAfterMs: undefined,
      suspended: undefined,
      ...(slot.record?.fallback === undefined || orphan !== null
        ? {}
        : { fallback: { ...slot.record.fallback, pending: false } }),
      phases: [
        ...record.phases.filter(({ name }) => name !== 'start' && name !== 'boot'),
        phase('start', startedAtMs, clock.nowMs()),
      ],
    });
    await followRun(hands, slot, { run, onFallback: () => launchLater(hands, slot) });
  } catch (error) {
    if (slot.run === run) slot.run = undefined;
    if (!slots.closed) await run.end();
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

async function untilConnected({ clock, hypervisor }: Hands, slot: Slot, run: Run): Promise<void> {
  const limit = new AbortController();
  const end = await Promise.race([
    run.connected.then(() => 'connected' as const),
    sleep(clock, launchTimeoutMs, limit.signal).then(() => 'timeout' as const),
  ]);
  limit.abort();
  if (end === 'timeout') {
    throw new DriverError(
      hypervisor.failureCode ?? 'HypervisorFailed',
      `${hypervisor.name} did not answer for ${slot.instanceId} within ${launchTimeoutMs} ms`,
    );
  }
}
