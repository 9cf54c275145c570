// What people do at a bad moment: operators, crowds of tenants, a client that sends garbage, an agent that lies.

import type { Fault } from './fault.ts';

export const peopleFaults = [
  {
    kind: 'host-paused',
    async strike({ on: { operator }, targets: { host }, hit }) {
      if (host && (await operator.pause(host.name))) hit(host.name);
    },
  },
  {
    kind: 'host-reserve',
    async strike({ on: { operator }, targets: { host }, hit }) {
      if (host && (await operator.reserve(host.name))) hit(host.name);
    },
  },
  {
    kind: 'host-rules',
    async strike({ on: { operator }, targets: { host }, hit }) {
      if (host && (await operator.rule(host.name))) hit(host.name);
    },
  },
  {
    kind: 'create-burst',
    strike({ on, prng, hit }) {
      if (on.burst(5 + prng.below(20)) > 0) hit('');
    },
  },
  {
    kind: 'rogue-client',
    async strike({ on: { rogueClient }, hit }) {
      if (await rogueClient.strike()) hit('');
    },
  },
  {
    kind: 'rogue-agent',
    async strike({ on: { hosts, rogueAgent, distrust }, hit }) {
      const [host] = hosts;
      // With a single host the checkers would have nothing left to check.
      if (hosts.length < 2 || !host) return;
      distrust(host.name);
      if (await rogueAgent.strike()) hit(host.name);
    },
    mend({ hosts }, struck) {
      // What the rogue said in the name of the host's sessions must not outlive them.
      if (struck) hosts[0]?.crash();
    },
  },
] as const satisfies readonly Fault[];
