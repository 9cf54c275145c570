// Faults of the network between hosts and control planes. Lost, late and repeated messages are weather, not faults.

import type { Partition } from '../world/peer.ts';
import { drawDownMs, type Fault, pick } from './fault.ts';

export const networkFaults = [
  {
    kind: 'partition',
    async strike({ on, targets: { host }, prng, hit, wait }) {
      if (!host) return;
      const partition = pick<Partition>(['both', 'both', 'to-server', 'from-server'], prng) ?? 'both';
      hit(`${host.name} ${partition}`);
      on.tally.hit(`partition-${partition}`);
      on.network.part(host.name, partition);
      await wait(500 + prng.below(prng.chance(1, 2) ? 5000 : 40_000));
      on.network.heal(host.name);
    },
  },
  {
    kind: 'all-hosts-parted',
    async strike({ on: { hosts, network }, prng, hit, wait }) {
      hit(`${hosts.length}`);
      for (const { name } of hosts) network.part(name, 'both');
      await wait(500 + drawDownMs(prng));
      for (const { name } of hosts) network.heal(name);
    },
  },
] as const satisfies readonly Fault[];
