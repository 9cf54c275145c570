// avoid-hosts: hosts that the instance should avoid are its last choice. Another attempt of a job avoids the hosts where
// earlier ones could not run.

import type { HostPlugin } from '../framework.ts';

export const avoidHosts: HostPlugin = {
  name: 'avoid-hosts',
  summary: 'hosts that the instance avoids come last',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const avoided = terms.avoidHosts;
    if (avoided === undefined || avoided.length === 0) return null;
    return { score: (slot) => (avoided.includes(hosts[slot]?.metadata.name ?? '') ? 0 : 100) };
  },
};
