// Cuts short what is being done to an instance when it is not wanted any more.

import { describeError } from '../../base/log.ts';
import type { Operation } from './guest-notes.ts';
import { isToBeOn } from './guest-state.ts';
import { textOfVolumes } from './observe.ts';
import type { GuestParts } from './parts.ts';
import { type Observed, planFor } from './plan.ts';
import { wantedNow } from './self-stop.ts';

export function interrupt(parts: GuestParts, instanceId: string): void {
  const operation = parts.notes.operations.get(instanceId);
  const known = parts.ledger.newestOf(instanceId)?.assignment;
  const desired = known && wantedNow(known, parts.leaseHeld);
  switch (operation?.kind) {
    case undefined:
    case 'resize':
    case 'start': // short, and a stop follows it
      return;
    case 'create': {
      const unfinished: Observed = { incarnation: operation.incarnation, state: 'preparing' };
      if (planFor(desired, unfinished) !== 'create') operation.abort.abort();
      return;
    }
    case 'save': {
      const running: Observed = { incarnation: operation.incarnation, state: 'running' };
      if (planFor(desired, running) !== 'save') operation.abort.abort();
      return;
    }
    case 'receive':
      if (desired?.want !== 'incoming' || desired.migration?.id !== operation.id) operation.abort.abort();
      return;
    case 'set-volumes': {
      // A guest that is to end need not let go of a volume first.
      const changes = isToBeOn(desired) && textOfVolumes(desired?.volumes ?? []) === operation.wanted;
      if (!changes) operation.abort.abort();
      return;
    }
    case 'stop':
      if (desired?.want === 'absent') hurry(parts, instanceId, operation, 0);
      else if (desired?.want === 'stopped') hurry(parts, instanceId, operation, desired.stopGraceMs);
  }
}

/** Shortens the grace of a stop that is under way. */
function hurry(
  { notes, log }: GuestParts,
  instanceId: string,
  stop: Extract<Operation, { kind: 'stop' }>,
  graceMs: number,
): void {
  if (graceMs >= stop.graceMs) return;
  notes.operations.set(instanceId, { ...stop, graceMs });
  stop.driver.stop(instanceId, graceMs).catch((error: unknown) => {
    log.warn('cannot hurry the stop of a guest', { instance: instanceId, error: describeError(error) });
  });
}
