// Suspends guests that run and lets them go on: their processors stand still, and all that they have in memory is kept. Never touches a
// guest that does not run, and decides nothing about who should.

import { describeError } from '../../../base/log.ts';
import type { GuestSuspension } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { inTheWay, noSuchGuest } from './errors.ts';
import type { Hands } from './hands.ts';
import type { RunSuspension } from './hypervisor.ts';
import { isDamaged } from './records.ts';
import { restoreGuest, saveGuest } from './saved-memory.ts';
import { checkId, type Slot } from './slots.ts';

export function suspensionOf(hands: Hands): GuestSuspension {
  const { failureCode = 'HypervisorFailed' } = hands.hypervisor;
  const set = async (instanceId: string, verb: 'suspend' | 'resume'): Promise<void> => {
    checkId(instanceId);
    const slot = hands.slots.get(instanceId);
    if (slot === undefined) throw noSuchGuest(verb, instanceId);
    await hands.slots.inLine(slot, async () => {
      if (slot.record === undefined || slot.record.removing) throw noSuchGuest(verb, instanceId);
      if (isDamaged(slot.record)) throw inTheWay(verb, instanceId);
      if (slot.record.saved === true) {
        if (verb === 'suspend') return; // it is more than that
        await restoreGuest(hands, slot);
      }
      const suspension = suspensionOfRun(slot, verb);
      try {
        await suspension[verb]();
      } catch (error) {
        if (error instanceof DriverError) throw error;
        throw new DriverError(failureCode, `cannot ${verb} ${instanceId}: ${describeError(error)}`, error);
      }
      await hands.slots.save(slot, { suspended: verb === 'suspend' });
    });
  };
  return {
    suspend: (instanceId) => set(instanceId, 'suspend'),
    resume: (instanceId) => set(instanceId, 'resume'),
    ...(hands.hypervisor.saves
      ? { save: (instanceId: string, signal: AbortSignal) => saveGuest(hands, instanceId, signal) }
      : {}),
  };
}

function suspensionOfRun({ instanceId, run }: Slot, verb: string): RunSuspension {
  if (run?.suspension !== undefined) return run.suspension;
  throw new DriverError('NotPossible', `cannot ${verb} ${instanceId}: it does not run`);
}
