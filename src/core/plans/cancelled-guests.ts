// The effect of a cancelled drain on each guest: moves that have not committed are cancelled, committed moves continue.

import type { PlannedGuest } from '../../api/plans/host-plan.ts';
import { abort } from '../migrations/migration-steps.ts';
import { openMigration } from '../migrations/migration-state.ts';
import type { Context } from '../state/context.ts';
import type { Change } from '../state/plan.ts';
import type { Snapshot } from '../state/snapshot.ts';

export interface CancelledGuests {
  readonly guests: readonly PlannedGuest[];
  readonly changes: readonly Change[];
}

/** Of a drain of this host. */
export function cancelledGuests(
  snapshot: Snapshot,
  { host, guests }: { readonly host: string; readonly guests: readonly PlannedGuest[] },
  ctx: Context,
): CancelledGuests {
  const changes: Change[] = [];
  const cancelled = guests.map((guest): PlannedGuest => {
    const instance = guest.kind === 'instance' ? snapshot.instanceById(guest.id) : undefined;
    if (guest.progress !== 'leaving' || instance === undefined) return guest;
    const { metadata, status } = instance.value;
    if (metadata.deletionRequestedAtMs !== undefined)
      return { ...guest, message: 'it goes on: its deletion has begun' };
    if (guest.action !== 'move') return guest;
    const migration = openMigration(instance.value);
    if (migration !== undefined) {
      const ended = { step: 'Cancelled', message: `the drain of host ${host} was cancelled` } as const;
      changes.push(...abort(instance, migration, ended, ctx).changes);
      return { ...guest, progress: 'left', message: 'its move was ended; it stays here' };
    }
    if (status.host === host) return { ...guest, progress: 'left', message: 'its move had ended; it stays here' };
    return { ...guest, progress: 'done', message: `its move was committed before; it goes on at ${status.host}` };
  });
  return { guests: cancelled, changes };
}
