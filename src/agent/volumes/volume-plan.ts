// What to do about one volume on this host: desired x observed -> actions and what is to be said of it, one total function. Pure; it never
// looks anything up. What is in the way of a change is said, and the change made as soon as it is gone.
//
//   observed ►   nothing         unfinished      damage          a volume
//   wanted ▼
//   present      make            make            failed          what of size and snapshots differs
//     made once  failed: lost    failed: lost    failed          the same
//   absent       report absent   remove          remove*         remove*
//   kept         report absent   report absent   failed          say what there is
//
// remove*: once no guest has it, and no copy is made of it. Until it is known which guests there are, all may have it.
//
// - An empty volume in the place of one that was lost would hide the loss: a volume is made only once.
// - A volume grows and never shrinks.
// - Snapshots that are no longer wanted go first, as they give room back; then it grows; then the new ones are made.
// - Every difference is an action of its own: one that fails keeps none of the others from being made.

import { gibibyte } from '../../base/bytes.ts';
import type { VolumeAssignment, VolumeSeen } from '../../api/agent-protocol.ts';
import type { VolumeLook } from './files/volume-files.ts';

export type VolumeAction =
  | { readonly do: 'make' }
  | { readonly do: 'grow' }
  | { readonly do: 'make-snapshot'; readonly name: string }
  | { readonly do: 'remove-snapshot'; readonly name: string }
  | { readonly do: 'remove' };

export type WantedVolume = Pick<VolumeAssignment, 'want' | 'sizeGiB' | 'snapshots' | 'made'>;

export interface ObservedVolume {
  readonly look: VolumeLook;
  /** The guest that has it, running or not. `unknown`: there may be one that cannot be seen now. */
  readonly holder: 'none' | 'unknown' | { readonly instanceId: string };
  /** Another volume is being made from a snapshot of it. */
  readonly copied: boolean;
}

export interface VolumePlan {
  readonly actions: readonly VolumeAction[];
  /** Where it stands before they are taken. */
  readonly verdict: 'absent' | Pick<VolumeSeen, 'state' | 'reason' | 'message'>;
}

export function planVolume(wanted: WantedVolume, observed: ObservedVolume): VolumePlan {
  const { look } = observed;
  if (wanted.want === 'absent') return planRemoval(observed);
  if (look.found === 'damage') return rest(damaged(look.why));
  if (look.found === 'volume')
    return wanted.want === 'kept' ? rest({ state: 'ready' }) : planChanges(wanted, { ...observed, look });
  if (wanted.want === 'kept') return rest('absent');
  const guestHasIt = typeof observed.holder === 'object'; // so it was there
  return wanted.made || guestHasIt ? rest(lost) : { actions: [{ do: 'make' }], verdict: { state: 'preparing' } };
}

const rest = (verdict: VolumePlan['verdict']): VolumePlan => ({ actions: [], verdict });

const lost = {
  state: 'failed',
  reason: 'VolumeLost',
  message:
    'it was on this host once, and nothing of it is there now; put its file back from a backup (docs/volumes.md says where), or delete it',
} as const;

const damaged = (why: string): Pick<VolumeSeen, 'state' | 'reason' | 'message'> => ({
  state: 'failed',
  reason: 'VolumeDamaged',
  message: `its file cannot be used: ${why}; it is left as it is: mend it, put it back from a backup, or delete the volume`,
});

function planRemoval({ look, holder, copied }: ObservedVolume): VolumePlan {
  if (look.found === 'nothing') return rest('absent');
  const waits = (reason: string, message: string): VolumePlan =>
    rest(
      look.found === 'damage'
        ? { ...damaged(look.why), message: `${message}; and its file cannot be used: ${look.why}` }
        : { state: 'ready', reason, message },
    );
  if (look.found !== 'unfinished') {
    if (holder === 'unknown') return waits('RemovalWaits', cannotSee('removed'));
    if (holder !== 'none') return waits('RemovalWaits', `it is removed once guest ${holder.instanceId} has it no more`);
    if (copied) return waits('RemovalWaits', 'it is removed once the copy is made that begins as a snapshot of it');
  }
  return { actions: [{ do: 'remove' }], verdict: { state: look.found === 'damage' ? 'failed' : 'ready' } };
}

function planChanges(
  wanted: WantedVolume,
  { look, holder, copied }: ObservedVolume & { readonly look: Extract<VolumeLook, { found: 'volume' }> },
): VolumePlan {
  const there = new Set(look.snapshots.map(({ name }) => name));
  const surplus = [...there].filter((name) => !wanted.snapshots.includes(name));
  const missing = wanted.snapshots.filter((name) => !there.has(name));
  const wantedBytes = wanted.sizeGiB * gibibyte;
  const grows = look.sizeBytes < wantedBytes;
  const changes: readonly VolumeAction[] = [
    ...(copied ? [] : surplus.map((name) => ({ do: 'remove-snapshot', name }) as const)),
    ...(grows ? [{ do: 'grow' } as const] : []),
    ...missing.map((name) => ({ do: 'make-snapshot', name }) as const),
  ];
  if (changes.length > 0) {
    return holder === 'unknown'
      ? rest({ state: 'ready', reason: 'ChangeWaits', message: cannotSee('changed') })
      : { actions: changes, verdict: { state: 'ready' } };
  }
  if (surplus.length > 0) {
    const message = `snapshot "${surplus[0]}" goes once the copy is made that begins as a snapshot of this volume`;
    return rest({ state: 'ready', reason: 'ChangeWaits', message });
  }
  if (look.sizeBytes > wantedBytes) {
    const message = `it has ${look.sizeBytes} bytes, more than the ${wanted.sizeGiB} GiB that are wanted, and volumes do not shrink; set sizeGiB to ${Math.ceil(look.sizeBytes / gibibyte)}`;
    return rest({ state: 'ready', reason: 'CannotShrink', message });
  }
  return rest({ state: 'ready' });
}

const cannotSee = (what: string): string =>
  `it is ${what} once all drivers of this host see their guests again: one of them may have it open`;
