// pool: an instance that names a pool is placed in it; one that names none may be placed anywhere.

import { type HostPlugin, refuse } from '../framework.ts';

export const pool: HostPlugin = {
  name: 'pool',
  summary: 'the host is in the requested pool',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const wanted = terms.pool;
    if (wanted === undefined) return null;
    return {
      filter(slot) {
        const found = hosts[slot]?.spec.pool;
        if (found === wanted) return null;
        return refuse(
          'PoolMismatch',
          `it is ${found === undefined ? 'in no pool' : `in pool ${found}`}, not in ${wanted}`,
        );
      },
    };
  },
};
