// Gives a guest that does not run other CPUs, memory, and a larger disk. The record is written last: until then everything is done again, and
// nothing of it harms when it is done twice.

import { constants, open } from 'node:fs/promises';
import { join } from 'node:path';
import { gibibyte } from '../../../base/bytes.ts';
import { hasExternalData, qcow2HeadBytes, virtualSizeBytes } from '../../images/qcow2-header.ts';
import { runQemuImg } from '../../images/qemu-img.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestSize } from '../driver.ts';
import { asDriverError, inTheWay, noSuchGuest } from './errors.ts';
import { guestFiles } from './guest-files.ts';
import type { Hands } from './hands.ts';
import { isDamaged } from './records.ts';
import { checkId } from './slots.ts';

const growTimeoutMs = 60_000; // writing a few tables takes milliseconds; this is for a hanging file system

export async function resizeGuest(hands: Hands, instanceId: string, size: GuestSize): Promise<void> {
  checkId(instanceId);
  const { slots } = hands;
  const slot = slots.get(instanceId);
  if (slot === undefined) throw noSuchGuest('resize', instanceId);
  await slots.inLine(slot, async () => {
    const { record } = slot;
    if (record === undefined || record.removing) throw noSuchGuest('resize', instanceId);
    if (isDamaged(record)) throw inTheWay('resize', instanceId);
    if (slot.run !== undefined || !record.created || record.launching || record.saved === true)
      throw new DriverError(
        'NotPossible',
        `cannot resize ${instanceId}: it runs, is suspended, or was never made whole`,
      );
    try {
      if (size.diskGiB > 0) await growDisk(hands, instanceId, size.diskGiB * gibibyte);
    } catch (error) {
      throw asDriverError(error, `cannot grow the disk of ${instanceId}`, hands.directory);
    }
    const { cpus, memoryMiB, order } = size;
    await slots.save(slot, { cpus, memoryMiB, resized: order });
  });
}

/** A disk that is as large already stays as it is. */
async function growDisk(hands: Hands, instanceId: string, sizeBytes: number): Promise<void> {
  const directory = await hands.directoryOf(instanceId);
  const head = await headOf(join(directory, guestFiles.disk));
  if (virtualSizeBytes(head) >= sizeBytes) return;
  // Who runs the guest can write the head: its names of other files are not followed.
  if (hasExternalData(head))
    throw new DriverError(
      'Internal',
      `cannot grow the disk of ${instanceId}: it says that its data is in another file`,
    );
  const disk = { driver: 'qcow2', file: { driver: 'file', filename: guestFiles.disk }, backing: null };
  const result = await runQemuImg(hands.clock, {
    program: hands.qemuImg,
    arguments: ['resize', '-q', `json:${JSON.stringify(disk)}`, String(sizeBytes)],
    workingDirectory: directory,
    timeoutMs: growTimeoutMs,
  });
  if (!result.ok) throw new DriverError('HypervisorFailed', `cannot grow the disk of ${instanceId}: ${result.output}`);
}

async function headOf(path: string): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const head = Buffer.alloc(qcow2HeadBytes);
    await file.read(head, 0, qcow2HeadBytes, 0);
    return head;
  } finally {
    await file.close();
  }
}
