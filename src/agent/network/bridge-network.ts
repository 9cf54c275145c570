// A bridge of the operator's as the guests' network: each guest gets a tap that is a port of it, and nothing else. Addresses, names and rules are
// those of the network behind the bridge.

import type { Clock } from '../../base/clock.ts';
import { describeError } from '../../base/log.ts';
import { DriverError } from '../host/driver-error.ts';
import { networkMacAddress, tapName } from './guest-network.ts';
import type { HostNetwork } from './host-network.ts';
import { type Link, removeCommands, tapCommands } from './links.ts';
import { neighbourAt } from './neighbours.ts';
import { networkTools } from './network-tools.ts';

export function createBridgeNetwork({
  bridge,
  clock,
}: {
  readonly bridge: string;
  readonly clock: Clock;
}): HostNetwork {
  const tools = networkTools(clock);
  return {
    kind: 'bridge',
    fault: () => tools.links().then((links) => faultOf(links, bridge), describeError),
    reserve: ({ instanceId, uuid }) => ({
      kind: 'bridge',
      bridge,
      tap: tapName('bridge', instanceId),
      macAddress: networkMacAddress(uuid),
    }),
    adopt() {},
    settle: () => Promise.resolve(),
    async attach({ instanceId, network }) {
      const what = `cannot connect ${instanceId}`;
      if (network.kind !== 'bridge') {
        const hint = 'set network: nat again, or delete the instance';
        throw new DriverError('HypervisorFailed', `${what}: it was made for the NAT network of its host; ${hint}`);
      }
      const links = await tools.links();
      const fault = faultOf(links, network.bridge);
      if (fault !== undefined) throw new DriverError('HypervisorFailed', `${what}: ${fault}`);
      await tools.runAll(tapCommands(links, network));
    },
    heardOf: async (macAddress, current) =>
      neighbourAt(await tools.run('ip', ['-json', '-4', 'neighbour', 'show']), macAddress, current),
    release: async (instanceId) => tools.runAll(removeCommands(await tools.links(), tapName('bridge', instanceId))),
    close: () => Promise.resolve(),
  };
}

function faultOf(links: readonly Link[], bridge: string): string | undefined {
  const there = links.find(({ name }) => name === bridge);
  if (there === undefined) return `this host has no bridge "${bridge}"; make it, or set "network" to another`;
  return there.bridge ? undefined : `"${bridge}" is no bridge; set "network" to one`;
}
