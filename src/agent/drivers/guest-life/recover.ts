// Finds the guests of an earlier run of the agent from their records and processes, and looks after those that run, without
// disturbing them.

import { readdir, rm } from 'node:fs/promises';
import { sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { seeDamaged } from './damaged.ts';
import { dropExport } from './disk/export-disk.ts';
import { hasFallenBack } from './fall-back.ts';
import { followRun, judge } from './follow-run.ts';
import { type GuestRecord, readGuestRecord, readPreviousRecord, restorePreviousRecord } from './guest-record.ts';
import type { Hands } from './hands.ts';
import { hostBootIdOf } from './host-boot.ts';
import type { Run, RunEnd } from './hypervisor.ts';
import { launchLater } from './launch.ts';
import { idPattern, type Slot } from './slots.ts';
import { noteOpenVolumes } from './disk/volumes.ts';

const adoptPatienceMs = 3000;

export async function recoverGuests(hands: Hands): Promise<void> {
  const { slots } = hands;
  const known = new Set(await hands.hypervisor.known?.());
  const folders = await readdir(await hands.root());
  const names = [...new Set([...folders, ...known])].filter((name) => idPattern.test(name)).sort();
  await refuseNewer(hands, names);
  if (names.length > 0) await hands.hypervisor.assertSight?.();
  await Promise.all(
    names.map((instanceId) => {
      const slot = slots.of(instanceId);
      return slots
        .inLine(slot, () => recoverGuest(hands, slot, known.has(instanceId)))
        .catch(async (error: unknown) => {
          // One guest's trouble must not hide the others.
          hands.log.error('cannot recover a guest', { instance: instanceId, error: describeError(error) });
          if (slot.record === undefined) await seeDamaged(hands, slot);
        });
    }),
  );
  await hands.hypervisor.network?.settle();
  await hands.hypervisor.settle?.();
  for (const slot of slots.all())
    if (slot.run === undefined && slot.record?.fallback?.pending) launchLater(hands, slot);
}

/** Records of a newer Berth are whole, but not for us to read: nothing is touched until that one is back. */
async function refuseNewer(hands: Hands, names: readonly string[]): Promise<void> {
  for (const instanceId of names) {
    const read = await readGuestRecord(await hands.directoryOf(instanceId)).catch(() => undefined); // told below
    if (read?.found !== 'newer') continue;
    throw new DriverError(
      'Internal',
      `cannot look after the guests below ${hands.directory}: the record of ${instanceId} has version ${read.version}, of a newer Berth; start that version again (the guests run on)`,
    );
  }
}

async function recoverGuest(hands: Hands, slot: Slot, known: boolean): Promise<void> {
  const directory = await hands.directoryOf(slot.instanceId);
  const read = await readGuestRecord(directory);
  if (read.found === 'record') return takeUp(hands, slot, read.record);
  const previous = await readPreviousRecord(directory);
  if (previous.found === 'record' && (await adoptByPrevious(hands, slot, previous.record))) return;
  const seen = await seeDamaged(hands, slot);
  const neverWas = read.found === 'nothing' && previous.found === 'nothing' && !known;
  if (neverWas && !seen.mayRun) {
    slot.record = undefined;
    return void (await rm(directory, { recursive: true, force: true })); // nothing ran before there was a record
  }
  hands.log.error('the record of a guest is damaged; the guest is left alone', {
    instance: slot.instanceId,
    directory,
    mayRun: seen.mayRun,
  });
  hands.slots.notify(slot.instanceId);
}

/** With the record before the last change, where its machine runs: what has changed since is found out again. False: it does not. */
async function adoptByPrevious(hands: Hands, slot: Slot, record: GuestRecord): Promise<boolean> {
  const { instanceId } = slot;
  const directory = await hands.directoryOf(instanceId);
  if ((await hands.hypervisor.running({ instanceId, directory })) === undefined) return false;
  const run = await hands.hypervisor.find(await hands.machineOf(record), true);
  if (run === null) return false;
  hands.log.warn('the record of a guest is damaged; the one before its last change takes its place', {
    instance: instanceId,
    directory,
  });
  await restorePreviousRecord(directory);
  await dropExport(directory);
  slot.record = record;
  await takeUpFound(hands, slot, { record, run });
  return true;
}

async function takeUp(hands: Hands, slot: Slot, record: GuestRecord): Promise<void> {
  slot.record = record;
  await dropExport(await hands.directoryOf(slot.instanceId));
  if (record.created) hands.ports.adopt(slot.instanceId, record.ports);
  const run = await hands.hypervisor.find(await hands.machineOf(record), record.launching);
  await takeUpFound(hands, slot, { record, run });
}

async function takeUpFound(
  hands: Hands,
  slot: Slot,
  { record, run }: { readonly record: GuestRecord; readonly run: Run | null },
): Promise<void> {
  const directory = await hands.directoryOf(slot.instanceId);
  const { network } = record;
  // Also for a creation that was under way: without a record, its parts would not be removed when it is no longer wanted. One that failed has none.
  if (network !== undefined && (record.created || run !== null || record.state === 'preparing'))
    hands.hypervisor.network?.adopt({ instanceId: slot.instanceId, directory, network });
  // The memory will not arrive: the agent starts the move again, or removes the guest.
  if (record.incoming === true) await run?.end();
  else if (record.saved === true) await endBesideMemory(hands, slot, run);
  else if (run !== null) await adopt(hands, slot, { record, run });
  else if (record.created && record.state === 'running' && !(await isBetweenTwo(hands, record))) {
    const end: RunEnd = {
      cause: 'other',
      detail: `${hands.hypervisor.name}${record.process === undefined ? '' : ` (pid ${record.process.pid})`} ended while the agent was away`,
    };
    const verdict = await judge(hands, record, { end, directory });
    await hands.slots.save(slot, { ...verdict, suspended: undefined, saving: undefined });
  }
  hands.slots.notify(slot.instanceId);
}

/** The agent before died after it had saved the memory, or while a machine read it: the file is the guest. */
async function endBesideMemory(hands: Hands, slot: Slot, run: Run | null): Promise<void> {
  await run?.end();
  await hands.slots.save(slot, { launching: false, process: undefined });
}

/** The agent before ended what KVM could not run, and died before it started it again. */
async function isBetweenTwo(hands: Hands, record: GuestRecord): Promise<boolean> {
  return record.fallback?.pending === true && hasFallenBack(hands, record, await hostBootIdOf(hands.hypervisor));
}

async function adopt(
  hands: Hands,
  slot: Slot,
  { record, run }: { readonly record: GuestRecord; readonly run: Run },
): Promise<void> {
  hands.ports.adopt(slot.instanceId, record.ports);
  hands.log.info('adopting a guest', { instance: slot.instanceId, pid: run.process?.pid });
  await hands.slots.save(slot, {
    process: run.process,
    launching: false,
    created: true,
    state: 'running',
    // A pause shows again; an error that the guest saw does not.
    reason: record.state === 'running' && record.reason?.code === 'DiskError' ? record.reason : undefined,
    ...(record.fallback === undefined || record.accelerator !== 'tcg'
      ? {}
      : { fallback: { ...record.fallback, pending: false } }),
  });
  await followRun(hands, slot, { run, onFallback: () => launchLater(hands, slot) });
  const limit = new AbortController();
  await Promise.race([run.connected, sleep(hands.clock, adoptPatienceMs, limit.signal)]); // one that hangs is watched all the same
  limit.abort();
  if (record.saving === true) await endSave(hands, slot, run);
  else if (record.handedOver === undefined) await endMoves(hands, slot, run);
  await noteOpenVolumes(hands, slot, run);
  await slot.console?.check().catch(() => {}); // no console yet: it is looked at again
}

/** A guest that a dead agent was saving runs on; whether it is suspended to disk is decided again. Does not wait for a hanging machine. */
async function endSave(hands: Hands, slot: Slot, { memory }: Run): Promise<void> {
  const limit = new AbortController();
  const ended = endOfSave(hands, slot, memory).catch((error: unknown) =>
    hands.log.warn('cannot see whether a guest was being saved', {
      instance: slot.instanceId,
      error: describeError(error),
    }),
  );
  await Promise.race([ended, sleep(hands.clock, adoptPatienceMs, limit.signal)]);
  limit.abort();
}

async function endOfSave(hands: Hands, slot: Slot, memory: Run['memory']): Promise<void> {
  await memory?.giveUp();
  await hands.slots.save(slot, { saving: undefined });
}

/** Guests that a dead agent was sending keep running. Does not wait for a hanging machine. */
async function endMoves({ clock, log }: Hands, { instanceId }: Slot, { live }: Run): Promise<void> {
  if (live === undefined) return;
  const limit = new AbortController();
  const settled = live
    .settle('found')
    .catch((error: unknown) =>
      log.warn('cannot see whether a guest was being sent', { instance: instanceId, error: describeError(error) }),
    );
  await Promise.race([settled, sleep(clock, adoptPatienceMs, limit.signal)]);
  limit.abort();
}
