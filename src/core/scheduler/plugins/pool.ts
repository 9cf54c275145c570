// pool: an instance that names a pool lands in it. One that names none may land anywhere.

import { fits, type Plugin, refuse } from '../framework.ts';

export const pool: Plugin = {
  name: 'pool',
  filter({ host }, request) {
    if (request.pool === undefined || host.value.spec.pool === request.pool) return fits;
    const where = host.value.spec.pool === undefined ? 'in no pool' : `in pool ${host.value.spec.pool}`;
    return refuse('PoolMismatch', `it is ${where}, not in ${request.pool}`);
  },
};
