// Guests that are suspended to disk: their memory is in a file, and their machine has ended. The record decides which of both is the guest: before it says
// `saved`, the machine is; from then on the file is, and no machine may run until the record does not say so any more.
//
//   running ─► suspended ─► saving ─► saved, machine ends ─► nothing runs ─► a machine reads the file ─► suspended ─► running
//                  ▲           │                                  ▲                   │
//                  └── failed ─┘ (runs on)                        └───── failed ──────┘

import { rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { mebibyte } from '../../../base/bytes.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { syncDirectory } from '../../host/write-whole.ts';
import { diskFull } from './disk/disk.ts';
import { asDriverError, inTheWay, noSuchGuest, throwIfAborted } from './errors.ts';
import { followRun } from './follow-run.ts';
import { guestFiles } from './guest-files.ts';
import type { GuestRecord } from './guest-record.ts';
import type { Hands } from './hands.ts';
import { hostBootIdOf } from './host-boot.ts';
import type { Run, RunMemory } from './hypervisor.ts';
import { launchLater, untilConnected } from './launch.ts';
import { isDamaged } from './records.ts';
import { checkId, type Slot } from './slots.ts';

/** The state of devices, and the tables of the stream. */
const besideMemoryMiB = 64;

export async function saveGuest(hands: Hands, instanceId: string, signal: AbortSignal): Promise<void> {
  checkId(instanceId);
  const { slots } = hands;
  const slot = slots.get(instanceId);
  if (slot === undefined) throw noSuchGuest('save', instanceId);
  const removed = new AbortController();
  slot.creating.add(removed); // a removal does not wait for the disk
  try {
    await slots.inLine(slot, () => saveNow(hands, slot, AbortSignal.any([signal, removed.signal])));
  } finally {
    slot.creating.delete(removed);
  }
}

async function saveNow(hands: Hands, slot: Slot, signal: AbortSignal): Promise<void> {
  const { slots, log } = hands;
  const { instanceId, record, run } = slot;
  if (record === undefined || record.removing) throw noSuchGuest('save', instanceId);
  if (isDamaged(record)) throw inTheWay('save', instanceId);
  if (record.saved === true) return;
  if (run?.memory === undefined || run.suspension === undefined || record.handedOver !== undefined)
    throw new DriverError('NotPossible', `cannot save ${instanceId}: it does not run`);
  throwIfAborted(signal, instanceId);
  const directory = await hands.directoryOf(instanceId);
  await assertRoom(record, directory);
  const path = join(directory, guestFiles.memory);
  try {
    await run.suspension.suspend();
    await slots.save(slot, { suspended: true, saving: true });
    const addresses = await run.memory.save(path, signal);
    await syncDirectory(directory);
    throwIfAborted(signal, instanceId);
    const volumes = record.volumes?.map((volume) => ({ ...volume, ...slotOf(addresses.get(volume.volumeId)) }));
    await slots.save(slot, { saving: undefined, saved: true, ...(volumes === undefined ? {} : { volumes }) });
  } catch (error) {
    if (slots.closed) throw error; // the next agent sees to it
    await goOn(hands, slot, run.memory);
    throw asDriverError(error, `cannot save ${instanceId}`, hands.directory);
  }
  log.info('a guest is suspended to disk', { instance: instanceId, bytes: (await stat(path)).size });
  await run.end();
  await slot.settled;
}

const slotOf = (slot: number | undefined): { readonly slot?: number } => (slot === undefined ? {} : { slot });

/** The machine is the guest again: the record says so, on disk, before the machine runs. */
async function goOn({ slots, log, directoryOf }: Hands, slot: Slot, memory: RunMemory): Promise<void> {
  try {
    await slots.save(slot, { saving: true, saved: undefined });
    await memory.giveUp();
    await slots.save(slot, { saving: undefined });
    await rm(join(await directoryOf(slot.instanceId), guestFiles.memory), { force: true });
  } catch (failure) {
    log.warn('cannot see what became of a guest that was being saved', {
      instance: slot.instanceId,
      error: describeError(failure),
    });
  }
}

async function assertRoom({ instanceId, memoryMiB }: GuestRecord, directory: string): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const freeMiB = Math.floor((bavail * bsize) / mebibyte);
  if (freeMiB >= memoryMiB + besideMemoryMiB) return;
  const { message } = diskFull(`cannot save the memory of ${instanceId} (${memoryMiB} MiB)`, directory);
  throw new DriverError(
    'DiskFull',
    `${message}; ${freeMiB} MiB are free, ${memoryMiB + besideMemoryMiB} MiB are needed`,
  );
}

/** For a caller whose turn in line it is: the guest is suspended, with its memory. When it throws, the file is the guest. */
export async function restoreGuest(hands: Hands, slot: Slot): Promise<void> {
  const { slots, hypervisor } = hands;
  const { instanceId } = slot;
  const { signal } = new AbortController();
  const directory = await hands.directoryOf(instanceId);
  const path = join(directory, guestFiles.memory);
  const leave = await hands.launching.enter(signal);
  try {
    const accelerator = slot.record?.accelerator ?? (await hypervisor.chosenAccelerator());
    await slots.save(slot, { launching: true, process: undefined, stopRequested: false, stopForcedAfterMs: undefined });
    if (slot.record === undefined) throw noSuchGuest('resume', instanceId);
    const machine = await hands.machineOf(slot.record);
    const { bindAddress } = hands;
    const onProcess = (process: GuestRecord['process']) => slots.save(slot, { process });
    const run = await hypervisor.start(machine, { accelerator, bindAddress, incoming: true, onProcess });
    slot.run = run;
    try {
      await untilConnected(hands, slot, run);
      if (!(await run.alive())) throw await hypervisor.startError(machine, await run.ended, bindAddress);
      await Promise.race([loaded(run, path, signal), endOf(run, instanceId)]);
      await slots.save(slot, {
        ...{ process: run.process, launching: false, hostBootId: await hostBootIdOf(hypervisor) },
        ...{ saved: undefined, suspended: true },
      });
    } catch (error) {
      slot.run = undefined;
      if (slots.closed)
        run.detach(); // the next agent ends it
      else await run.end();
      await slots.save(slot, { launching: false, process: undefined });
      throw asDriverError(error, `cannot resume ${instanceId} from disk`, hands.directory);
    }
    await followRun(hands, slot, { run, onFallback: () => launchLater(hands, slot) });
  } finally {
    leave();
  }
  await rm(path, { force: true });
}

async function loaded({ memory }: Run, path: string, signal: AbortSignal): Promise<void> {
  if (memory === undefined) throw new DriverError('NotPossible', 'this machine reads no memory from a file');
  await memory.load(path, signal);
}

async function endOf(run: Run, instanceId: string): Promise<never> {
  const { detail } = await run.ended;
  throw new DriverError('HypervisorFailed', `the machine that reads the memory of ${instanceId} has ended: ${detail}`);
}

/** For a caller whose turn in line it is: the guest has stopped, as if it had been ended by force. */
export async function discardMemory({ slots, directoryOf }: Hands, slot: Slot): Promise<void> {
  await slots.save(slot, { state: 'stopped', reason: undefined, saved: undefined, suspended: undefined });
  await rm(join(await directoryOf(slot.instanceId), guestFiles.memory), { force: true });
}
