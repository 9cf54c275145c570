// Ends a guest and removes every trace of it: its process, also one that is not watched, its files, its ports. Must never
// touch a process that is not surely this guest's.

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError } from '../../../base/log.ts';
import type { Hands } from './hands.ts';
import { isDamaged } from './records.ts';
import { abortAll, checkId, type Slot } from './slots.ts';
import { takeVolumes } from './disk/volumes.ts';

export async function removeGuest(hands: Hands, instanceId: string): Promise<void> {
  checkId(instanceId);
  const slot = hands.slots.of(instanceId);
  abortAll(slot.creating);
  abortAll(slot.stopping);
  await hands.slots.inLine(slot, () => removeNow(hands, slot));
}

/** For a caller whose turn in line it is. */
export async function removeNow(hands: Hands, slot: Slot): Promise<void> {
  const directory = await hands.directoryOf(slot.instanceId);
  if (slot.record !== undefined && !isDamaged(slot.record)) {
    slot.record = { ...slot.record, removing: true };
    await hands.slots.save(slot, {}).catch((error: unknown) =>
      hands.log.warn('cannot write the record of a guest', {
        instance: slot.instanceId,
        error: describeError(error),
      }),
    ); // a full disk must not keep anyone from making room
  }
  await slot.run?.end();
  await slot.settled.catch(() => {}); // was logged, and matters no more
  const { record } = slot;
  await takeVolumes(hands, slot, record?.volumes ?? []).catch((error: unknown) =>
    hands.log.warn('cannot take the volumes of a guest back', {
      instance: slot.instanceId,
      error: describeError(error),
    }),
  ); // the next owner takes it anyway
  if (record !== undefined)
    await hands.hypervisor.purge({ directory, ...(isDamaged(record) ? {} : { uuid: record.uuid }) });
  await hands.hypervisor.network?.release(slot.instanceId);
  slot.console?.stop();
  slot.console = undefined;
  slot.run = undefined;
  const hadRecord = slot.record !== undefined;
  slot.record = undefined; // from here on nothing writes into the folder
  await slot.writing;
  // The record goes last: an agent that dies here finds the guest again and removes the rest.
  for (const name of await readdir(directory).catch(() => [])) {
    if (name !== 'guest.json') await rm(join(directory, name), { recursive: true, force: true });
  }
  // The keeper of its console log may still write a file there as it ends; Node then tries again.
  await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  hands.ports.release(slot.instanceId);
  slot.settled = Promise.resolve();
  if (hadRecord) hands.slots.notify(slot.instanceId);
}
