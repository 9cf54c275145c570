// What the guests of a driver use now. A guest that cannot be measured is left out: nothing depends on it.

import { describeError, type Logger } from '../../../base/log.ts';
import type { GuestUsage } from '../../../api/guests/guest-usage.ts';
import type { Slots } from './slots.ts';

/** Guests measured at the same time: few, as each costs its hypervisor or engine a question. */
const atOnceMax = 4;

export async function usageOf(slots: Slots, log: Logger): Promise<readonly GuestUsage[]> {
  const waiting = slots.all().flatMap(({ record, run }) => (record && run?.usage ? [{ record, run }] : []));
  const found: GuestUsage[] = [];
  const measure = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { record, run } = next;
      const { instanceId, incarnation } = record;
      try {
        const counters = await run.usage?.();
        if (counters !== undefined) found.push({ instanceId, incarnation, ...counters });
      } catch (error) {
        log.debug('cannot measure a guest', { instance: instanceId, error: describeError(error) });
      }
    }
  };
  await Promise.all(Array.from({ length: atOnceMax }, measure));
  return found;
}
