// unknown-guest: not where there is a guest of the instance that no record speaks of, as after a restore: placed there, it would have to
// make way, and it may be all that there is of the instance's data. Only the life that is to begin may be there: that is taken up again.

import { type GroupPlugin, refuse } from '../framework.ts';

export const unknownGuest: GroupPlugin = {
  name: 'unknown-guest',
  summary: 'the host has no guest of the instance that no record speaks of',
  dependsOn: 'group',
  prepare({ asker }, fleet) {
    const strangers = asker === undefined ? undefined : fleet.strangers.of(asker);
    if (asker === undefined || !strangers) return null;
    const next = fleet.nextIncarnationOf(asker);
    return {
      filter(slot) {
        const other = strangers.get(slot)?.find((incarnation) => incarnation !== next);
        if (other === undefined) return null;
        return refuse(
          'UnknownGuest',
          () =>
            `it has a guest of this instance, incarnation ${other}, that no record speaks of; "berth audit --apply --remove-unknown" removes it`,
        );
      },
    };
  },
};
