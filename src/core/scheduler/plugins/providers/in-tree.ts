// in-tree: the host has the provider that a resource query names, the host's own or that of a device or cell. An instance has
// all of its providers on one host, so the rule is the same for each group of the query.

import { uuidOf } from '../../../state/views/placement-index.ts';
import { type HostPlugin, refuse } from '../../framework.ts';

export const inTree: HostPlugin = {
  name: 'in-tree',
  summary: 'the host has the requested resource provider',
  dependsOn: 'host',
  prepare({ terms }, fleet) {
    const named = terms.inTree;
    if (!named) return null;
    return {
      filter(slot) {
        const own = (fleet.trees[slot] ?? []).map(({ provider }) => uuidOf(provider.id));
        const missing = named.find((uuid) => !own.includes(uuid));
        return missing === undefined ? null : refuse('TreeMismatch', `it has no resource provider ${missing}`);
      },
    };
  },
};
