// unknown-guest: not where there is a guest of the instance that no record speaks of, as after a restore: placed there, it would have to
// make way, and it may be all that there is of the instance's data. Only the life that is to begin may be there: that is taken up again.
// After a restore, what there was before waits until a host has told what guests it has.

import { type GroupPlugin, refuse } from '../framework.ts';

export const unknownGuest: GroupPlugin = {
  name: 'unknown-guest',
  summary: 'the host has no unknown guest of the instance',
  dependsOn: 'group',
  prepare({ asker }, fleet) {
    if (asker === undefined) return null;
    const strangers = fleet.strangers.of(asker);
    const { restoredUpToMs } = fleet;
    if (!strangers && restoredUpToMs === undefined) return null; // as nearly always: the instance is not even looked up
    const instance = fleet.instance(asker);
    if (!instance) return null;
    const wasRestored = restoredUpToMs !== undefined && instance.metadata.createdAtMs <= restoredUpToMs;
    if (!strangers && !wasRestored) return null;
    const next = fleet.nextIncarnationOf(instance);
    return {
      filter(slot) {
        if (wasRestored && fleet.hosts[slot]?.status.guestsTold !== true) return notTold;
        const other = strangers?.get(slot)?.find((incarnation) => incarnation !== next);
        if (other === undefined) return null;
        return refuse(
          'UnknownGuest',
          () =>
            `it has a guest of this instance, incarnation ${other}, that is unknown; "berth audit --apply --remove-unknown" removes it`,
        );
      },
    };
  },
};

const notTold = refuse(
  'GuestsNotTold',
  'its agent has not reported all its guests since the store was restored: one may be this instance',
);
