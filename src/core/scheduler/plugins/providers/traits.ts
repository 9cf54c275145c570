// traits: the host has every required trait, no forbidden one, and at least one of each list. Its traits are those of
// its root provider: reported by its agent, set by its operator, or set through the Placement API.

import { traitFault } from '../../../ledger/traits.ts';
import { type HostPlugin, refuse } from '../../framework.ts';

export const traits: HostPlugin = {
  name: 'traits',
  summary: 'the host has the required traits, and none of the forbidden ones',
  dependsOn: 'host',
  prepare({ terms }, fleet) {
    const rules = terms.traits;
    if (!rules) return null;
    return {
      filter(slot) {
        const fault = traitFault(rules, fleet.trees[slot]?.[0]?.provider.traits ?? []);
        switch (fault?.kind) {
          case undefined:
            return null;
          case 'missing':
            return refuse('TraitMissing', `it lacks the trait ${fault.trait}`);
          case 'forbidden':
            return refuse('TraitForbidden', `it has the trait ${fault.trait}, which is forbidden`);
          case 'none-of':
            return refuse('TraitMissing', `it has none of the traits ${fault.traits.join(', ')}`);
        }
      },
    };
  },
};
