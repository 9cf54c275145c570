// Resumes a guest after a failed live move. Only when the control plane has ended the move: until then the guest may run on the target.

import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import { describeError } from '../../../base/log.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import { codeOf } from '../failure.ts';
import type { Seen } from '../observe.ts';
import type { GuestParts } from '../parts.ts';

export async function takeBack(parts: GuestParts, { assignment }: LedgerEntry, { driver, guest }: Seen): Promise<Step> {
  const { instanceId } = assignment;
  parts.log.info('resuming a guest after a failed live move', {
    instance: instanceId,
    move: guest.handedOver?.id,
  });
  try {
    await parts.moves.untilSent(instanceId);
    await driver.live?.takeBack(instanceId);
  } catch (error) {
    if (parts.closing() || codeOf(error) === 'NoSuchGuest') return 'go-on'; // observed again next time
    parts.notes.wait(instanceId, describeError(error));
    throw error;
  }
  return 'go-on';
}
