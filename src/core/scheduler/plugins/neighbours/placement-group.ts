// placement-group: an instance whose placement group was deleted is not placed, because its rules are no longer known.

import { nowhere } from '../../neighbours/domains.ts';
import { type GroupPlugin, refuse } from '../../framework.ts';

export const placementGroup: GroupPlugin = {
  name: 'placement-group',
  summary: 'the placement group that the instance names exists',
  dependsOn: 'group',
  prepare({ groups }) {
    if (groups.length === 0) return null;
    for (const term of groups) {
      if (term.kind !== 'missingGroup') continue;
      return nowhere(() => refuse('GroupMissing', `its placement group "${term.placementGroup}" has been deleted`));
    }
    return null;
  },
};
