// traits: the host bears every required trait, none of the forbidden, and of each list at least one. Its traits are those of its root
// provider: what its agent told of, what its operator gave it, what the Placement API set.

import { traitFault } from '../../ledger/traits.ts';
import { type HostPlugin, refuse } from '../framework.ts';

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
