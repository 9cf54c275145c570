// Copies the disk of a guest that does not run, with all that it lies upon, into one file that stands for itself. The guest's own disk is
// only read, and the guest is not started, stopped or removed meanwhile.

import { constants, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasExternalData, qcow2HeadBytes } from '../../../images/qcow2-header.ts';
import { flattenArguments, runQemuImg } from '../../../images/qemu-img.ts';
import type { ExportedDisk } from '../../driver.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { asDriverError, inTheWay, noSuchGuest } from '../errors.ts';
import { guestFiles } from '../guest-files.ts';
import type { Hands } from '../hands.ts';
import { isDamaged } from '../records.ts';
import { checkId } from '../slots.ts';

const fileName = 'export.qcow2';
/** QEMU wrote this disk, so its length is honest: a terabyte compresses at 300 MB/s in an hour. */
const limits = { cpuSeconds: 4 * 3600, memoryBytes: 2 * 1024 ** 3 };
const timeoutMs = 2 * 3_600_000;

export async function exportDisk(hands: Hands, instanceId: string, signal: AbortSignal): Promise<ExportedDisk> {
  checkId(instanceId);
  const { clock, slots } = hands;
  const slot = slots.get(instanceId);
  if (slot === undefined) throw noSuchGuest('copy the disk of', instanceId);
  const removing = new AbortController();
  slot.creating.add(removing); // a remove does not wait for a copy that is no longer wanted
  try {
    return await slots.inLine(slot, async () => {
      const { record } = slot;
      if (record === undefined) throw noSuchGuest('copy the disk of', instanceId);
      if (isDamaged(record)) throw inTheWay('copy the disk of', instanceId);
      if (slot.run !== undefined || !record.created || record.removing)
        throw new DriverError('Aborted', `cannot copy the disk of ${instanceId}: it was started or removed meanwhile`);
      const directory = await hands.directoryOf(instanceId);
      const path = join(directory, fileName);
      await rm(path, { force: true });
      try {
        if (await hasOtherData(join(directory, guestFiles.disk)))
          throw new DriverError(
            'Internal',
            `cannot copy the disk of ${instanceId}: it says that its data is in another file`,
          );
        const result = await runQemuImg(clock, {
          program: hands.qemuImg,
          arguments: flattenArguments({ from: guestFiles.disk, to: fileName, image: record.image }),
          workingDirectory: directory,
          timeoutMs,
          signal: AbortSignal.any([signal, removing.signal]),
          limits,
        });
        if (!result.ok) throw failed(instanceId, result);
        const file = await open(path, 'r');
        try {
          const { size: sizeBytes } = await file.stat();
          await rm(path); // the next copy must not meet this one, nor this one be left when the agent dies
          return { sizeBytes, file };
        } catch (error) {
          await file.close();
          throw error;
        }
      } catch (error) {
        await rm(path, { force: true });
        throw asDriverError(error, `cannot copy the disk of ${instanceId}`, hands.directory);
      }
    });
  } finally {
    slot.creating.delete(removing);
  }
}

/** What an agent that was killed left of a copy: nothing refers to it any more, and it may be as large as the disk. */
export async function dropExport(directory: string): Promise<void> {
  await rm(join(directory, fileName), { force: true });
}

/** What a guest made of QEMU can write to the disk's header, and its copy is made by root: it must not lead to a file of this host's. */
async function hasOtherData(path: string): Promise<boolean> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(qcow2HeadBytes), 0, qcow2HeadBytes, 0);
    return hasExternalData(buffer.subarray(0, bytesRead));
  } finally {
    await file.close();
  }
}

function failed(
  instanceId: string,
  { reason, output }: { readonly reason: string; readonly output: string },
): DriverError {
  const what = `cannot copy the disk of ${instanceId}`;
  if (reason === 'aborted') return new DriverError('Aborted', `${what}: it was given up`);
  if (reason === 'timeout') return new DriverError('Internal', `${what}: it took more than ${timeoutMs} ms`);
  if (/No space left|Disk quota exceeded/i.test(output))
    return new DriverError('DiskFull', `${what}: its host has no room for a copy`);
  return new DriverError('Internal', `${what}: ${output}`);
}
