// `/v1/servers`: which servers are on this store, and what they know.

import { storeRoutes as routes } from '../../../../api/routes/store.ts';
import type { ServerList } from '../../../../api/upgrade/servers.ts';
import { keys } from '../../../../core/state/keys.ts';
import { recordsVersion } from '../../../../core/state/upgrade.ts';
import type { Decider } from '../../../decide.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';

export function serverListRoute({ cache }: Pick<Decider, 'cache'>): Route {
  return bind(routes.listServers, () => {
    const items = Array.from(cache.listCommitted('member'), ({ value: { kind: _, ...member } }) => member);
    const holder = cache.committed('leader', keys.leader)?.value.holder;
    const list: ServerList = {
      items: items.sort((a, b) => (a.name < b.name ? -1 : 1)),
      ...(holder ? { leader: holder } : {}),
      recordsVersion: cache.committed('cluster', keys.cluster)?.value.recordsVersion ?? recordsVersion,
    };
    return { status: 200, json: list };
  });
}
