// A guest whose record cannot be read: shown as running as long as it runs, or may, so that nothing is started beside it. Nothing is done to it.

import { join } from 'node:path';
import { describeError } from '../../../base/log.ts';
import type { Hands } from './hands.ts';
import { damagedRecord, isDamaged } from './records.ts';
import type { Slot } from './slots.ts';

const lookEveryMs = 1000; // there are few, and they are looked for among all processes

/** Shows it as it is, and again when it has ended. */
export async function seeDamaged(hands: Hands, slot: Slot): Promise<{ readonly mayRun: boolean }> {
  const { instanceId } = slot;
  const directory = join(hands.directory, instanceId);
  const life = await lifeOf(hands, instanceId);
  slot.record = damagedRecord(instanceId, directory, life);
  if (life !== undefined) lookLater(hands, slot);
  return { mayRun: life !== undefined };
}

function lookLater(hands: Hands, slot: Slot): void {
  const { slots } = hands;
  const look = async (): Promise<void> => {
    if (slot.record === undefined || !isDamaged(slot.record)) return;
    const before = slot.record.reason?.message;
    await seeDamaged(hands, slot);
    if (slot.record.reason?.message !== before) slots.notify(slot.instanceId);
  };
  const inLine = (): void => {
    if (slots.closed) return;
    slots
      .inLine(slot, look)
      .catch((error: unknown) =>
        hands.log.debug('cannot look at a damaged guest', { instance: slot.instanceId, error: describeError(error) }),
      );
  };
  hands.clock.setTimer(lookEveryMs, inLine, { background: true });
}

async function lifeOf({ hypervisor, directoryOf }: Hands, instanceId: string): Promise<string | undefined> {
  try {
    return await hypervisor.running({ instanceId, directory: await directoryOf(instanceId) });
  } catch (error) {
    return `it may run: ${describeError(error)}`;
  }
}
