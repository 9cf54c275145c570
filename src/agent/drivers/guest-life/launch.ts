// Starts the machine of a guest whose files exist. Every step is recorded before it happens, so that the machine of an agent that dies is found
// by the next one; and no guest ever has two machines.

import { join } from 'node:path';
import type { Accelerator, GuestPort } from '../../../api/agent-protocol.ts';
import { sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { PortInUse } from '../../host/port-in-use.ts';
import { consoleSize } from './ways-in/console-log.ts';
import { asDriverError, noSuchGuest, throwIfAborted } from './errors.ts';
import { hasFallenBack } from './fall-back.ts';
import { followRun } from './follow-run.ts';
import { guestFiles } from './guest-files.ts';
import type { GuestRecord } from './guest-record.ts';
import type { Hands } from './hands.ts';
import { hostBootIdOf } from './host-boot.ts';
import type { Machine, Run } from './hypervisor.ts';
import { phase } from './records.ts';
import type { Slot } from './slots.ts';

const launchTimeoutMs = 30_000; // it answers within 100 ms; this is for a host that swaps
const portTriesMax = 5;

/** Chooses ports with `hostPort` 0 in `wanted` again when another program took them meanwhile. */
export async function launch(
  hands: Hands,
  slot: Slot,
  { wanted, signal }: { readonly wanted: readonly GuestPort[]; readonly signal: AbortSignal },
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await launchOnce(hands, slot, signal);
    } catch (error) {
      if (!(error instanceof PortInUse) || tries === portTriesMax) throw error;
      const { hostPort } = error.port;
      const isOurChoice = slot.record?.ports.some((port, i) => wanted[i]?.hostPort === 0 && port.hostPort === hostPort);
      if (isOurChoice !== true) throw error;
      await hands.slots.save(slot, { ports: await hands.ports.reserve(slot.instanceId, wanted) });
    }
  }
}

/** Completes a fallback after the earlier operations on this guest, unless one of them made it pointless. */
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
  if (slot.record === undefined) throw noSuchGuest('start', slot.instanceId);
  const fallenBack =
    slot.record.fallback !== undefined && hasFallenBack(hands, slot.record, await hostBootIdOf(hands.hypervisor));
  const accelerator = fallenBack ? 'tcg' : await hands.hypervisor.chosenAccelerator();
  const startedAtMs = hands.clock.nowMs();
  // The machine of an agent that died before the record said where the machine is.
  const orphan = await hands.hypervisor.find(await hands.machineOf(slot.record), true);
  if (orphan === null) await noteLaunch(hands, slot, { record: slot.record, accelerator, startedAtMs, fallenBack });
  const { record } = slot;
  if (signal.aborted) orphan?.detach(); // its supervision began when it was found
  throwIfAborted(signal, slot.instanceId);
  const machine = await hands.machineOf(record);
  const run =
    orphan ??
    (await hands.hypervisor.start(machine, {
      accelerator,
      bindAddress: hands.bindAddress,
      onProcess: (process) => hands.slots.save(slot, { process }),
    }));
  await bringUp(hands, slot, { run, machine, startedAtMs, adopted: orphan !== null, signal });
}

/** Records what is about to happen, before it happens. */
async function noteLaunch(
  hands: Hands,
  slot: Slot,
  start: {
    readonly record: GuestRecord;
    readonly accelerator: Accelerator;
    readonly startedAtMs: number;
    readonly fallenBack: boolean;
  },
): Promise<void> {
  const { created, state, network, ports } = start.record;
  const directory = await hands.directoryOf(slot.instanceId);
  await hands.slots.save(slot, {
    // If this agent dies here, the next one starts the guest: its previous end is not the end of this run.
    ...(created && (state === 'exited' || state === 'failed') ? { state: 'stopped', reason: undefined } : {}),
    accelerator: start.accelerator,
    startedAtMs: start.startedAtMs,
    launching: true,
    process: undefined,
    hostBootId: await hostBootIdOf(hands.hypervisor),
    ...(start.fallenBack ? {} : { fallback: undefined }),
    bootOffset: await consoleSize(join(directory, guestFiles.console)),
    ready: false,
    address: network?.kind === 'nat' ? network.address : undefined,
    stopRequested: false,
    stopForcedAfterMs: undefined,
    guestEnd: undefined,
    halt: undefined,
    ports: ports.map((port) => ({ ...port, hostAddress: hands.bindAddress })),
  });
}

interface Starting {
  readonly run: Run;
  /** As it was started. */
  readonly machine: Machine;
  readonly startedAtMs: number;
  /** The run was found instead of started. */
  readonly adopted: boolean;
  readonly signal: AbortSignal;
}

/** Resolves when the run is recorded as running. Ends the run when anything fails, or when `signal` aborts. */
async function bringUp(hands: Hands, slot: Slot, starting: Starting): Promise<void> {
  const { run, signal } = starting;
  const giveUp = (): void => giveRunUp(hands, slot, run);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    await untilConnected(hands, slot, run);
    throwIfAborted(signal, slot.instanceId);
    await assertUp(hands, starting);
    slot.run = run; // before the record says so, because watchers of the record may want to connect at once
    await noteRunning(hands, slot, starting);
    await followRun(hands, slot, { run, onFallback: () => launchLater(hands, slot) });
  } catch (error) {
    if (slot.run === run) slot.run = undefined;
    if (!hands.slots.closed) await run.end();
    throw error;
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}

function giveRunUp({ slots, log }: Hands, slot: Slot, run: Run): void {
  if (slots.closed) return run.detach(); // the next agent finds it
  run
    .end()
    .catch((error: unknown) =>
      log.error('a machine does not end', { instance: slot.instanceId, error: describeError(error) }),
    );
}

async function assertUp({ hypervisor, bindAddress }: Hands, { run, machine }: Starting): Promise<void> {
  if (await run.alive()) return;
  const end = await run.ended;
  // A guest that has ended by itself did run: its end is reported like any other.
  if (end.cause !== 'guest-shutdown') throw await hypervisor.startError(machine, end, bindAddress);
}

async function noteRunning(
  { slots, clock }: Hands,
  slot: Slot,
  { run, machine, startedAtMs, adopted }: Starting,
): Promise<void> {
  await slots.save(slot, {
    process: run.process,
    launching: false,
    created: true,
    state: 'running',
    reason: undefined,
    stopRequested: false,
    stopForcedAfterMs: undefined,
    suspended: undefined,
    saving: undefined,
    ...(slot.record?.fallback === undefined || adopted
      ? {}
      : { fallback: { ...slot.record.fallback, pending: false } }),
    phases: [
      ...machine.record.phases.filter(({ name }) => name !== 'start' && name !== 'boot'),
      phase('start', startedAtMs, clock.nowMs()),
    ],
  });
}

export async function untilConnected({ clock, hypervisor }: Hands, slot: Slot, run: Run): Promise<void> {
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
