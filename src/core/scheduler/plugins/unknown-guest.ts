// unknown-guest: not on a host with an unknown guest of the instance, as after a restore: a placement there would
// delete that guest, which may hold the only copy of the instance's data. A guest of the incarnation about to start is
// allowed: it is adopted. After a restore, older instances wait until a host has reported its guests.

import { type GroupPlugin, refuse } from '../framework.ts';

export const unknownGuest: GroupPlugin = {
  name: 'unknown-guest',
  summary: 'the host has no unknown guest of the instance',
  dependsOn: 'group',
  prepare({ asker }, fleet) {
    if (asker === undefined) return null;
    const unknown = fleet.unknownGuests.of(asker);
    const { restoredUpToMs } = fleet;
    if (!unknown && restoredUpToMs === undefined) return null; // as nearly always: the instance is not looked up
    const instance = fleet.instance(asker);
    if (!instance) return null;
    const wasRestored = restoredUpToMs !== undefined && instance.metadata.createdAtMs <= restoredUpToMs;
    if (!unknown && !wasRestored) return null;
    const next = fleet.nextIncarnationOf(instance);
    return {
      filter(slot) {
        if (wasRestored && fleet.hosts[slot]?.status.guestsTold !== true) return notTold;
        const other = unknown?.get(slot)?.find((incarnation) => incarnation !== next);
        if (other === undefined) return null;
        return refuse(
          'UnknownGuest',
          () =>
            `it has a guest of this instance, incarnation ${other}, that is unknown; "berth verify --apply --remove-unknown" removes it`,
        );
      },
    };
  },
};

const notTold = refuse(
  'GuestsNotTold',
  'its agent has not reported all its guests since the store was restored: one may be this instance',
);
