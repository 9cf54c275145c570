// aggregates: the host is in the aggregates that a resource query asks for, and in none that it excludes. Its aggregates are
// those of its root provider, and that of its pool.

import { aggregatesIn } from '../../../ledger/pool-aggregate.ts';
import { type HostPlugin, refuse } from '../../framework.ts';

export const aggregates: HostPlugin = {
  name: 'aggregates',
  summary: 'the host is in the requested aggregates, and in none of the excluded ones',
  dependsOn: 'host',
  prepare({ terms }, fleet) {
    const rules = terms.aggregates;
    if (!rules) return null;
    return {
      filter(slot) {
        const pool = fleet.hosts[slot]?.spec.pool;
        const all = aggregatesIn(pool, fleet.trees[slot]?.[0]?.provider.aggregates ?? []);
        const isIn = (uuid: string): boolean => all.includes(uuid);
        const missing = rules.memberOf.find((any) => !any.some(isIn));
        if (missing) return refuse('AggregateMismatch', `it is not in the aggregate ${missing.join(' or ')}`);
        const excluded = rules.notMemberOf.find(isIn);
        return excluded === undefined
          ? null
          : refuse('AggregateMismatch', `it is in the aggregate ${excluded}, which is excluded`);
      },
    };
  },
};
