// Gives a guest that does not run the CPUs, memory and disk of its assignment.

import { describeError } from '../../../base/log.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import { codeOf } from '../failure.ts';
import type { Seen } from '../observe.ts';
import type { GuestParts } from '../parts.ts';

export async function resize(parts: GuestParts, { assignment }: LedgerEntry, { driver, guest }: Seen): Promise<Step> {
  const { instanceId, cpus, memoryMiB, diskGiB, resized = 0 } = assignment;
  if (driver.resize === undefined) return 'rest';
  parts.log.info('resizing a guest', {
    instance: instanceId,
    incarnation: guest.incarnation,
    cpus,
    memoryMiB,
    diskGiB,
  });
  parts.notes.operations.set(instanceId, { kind: 'resize' });
  try {
    await driver.resize(instanceId, { cpus, memoryMiB, diskGiB, order: resized });
  } catch (error) {
    if (parts.closing() || codeOf(error) === 'NoSuchGuest') return 'go-on';
    parts.notes.wait(instanceId, `cannot be resized: ${describeError(error)}`);
    throw error;
  } finally {
    parts.notes.operations.delete(instanceId);
  }
  return 'go-on';
}
