// Connects a virtual machine that has a place in the host's network, and publishes its ports. There the agent forwards the ports, not the
// hypervisor: they are closed while no agent runs.

import type { Clock } from '../../../../base/clock.ts';
import type { HostNetwork } from '../../../network/host-network.ts';
import { publishAgain, publishByAgent } from '../../../network/publish-ports.ts';
import type { PortForwarder } from '../../../network/port-forwarder.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { connectTcp } from './connect-tcp.ts';
import type { GuestSpec } from '../../driver.ts';
import type { Machine, Run } from '../hypervisor.ts';

interface Publishing {
  readonly clock: Clock;
  readonly bindAddress: string;
}

/** Why a guest cannot have its published ports in the network of the host; undefined: it can. */
export function refusePorts(
  network: HostNetwork | undefined,
  { instanceId, ports }: Pick<GuestSpec, 'instanceId' | 'ports'>,
): DriverError | undefined {
  return network?.kind === 'bridge' && ports.length > 0 ? noPublishedPorts(instanceId) : undefined;
}

/** Throws `HypervisorFailed`. */
export async function connectGuest(network: HostNetwork | undefined, { record, directory }: Machine): Promise<void> {
  const { instanceId } = record;
  if (record.network === undefined) return; // the guest was created for a network of its hypervisor, and stays there
  if (network !== undefined) return network.attach({ instanceId, directory, network: record.network });
  const was = record.network.kind === 'nat' ? 'nat' : `bridge:${record.network.bridge}`;
  throw new DriverError(
    'HypervisorFailed',
    `cannot connect ${instanceId}: it was made while the agent's network was ${was}, and now it is user; set network: ${was} again, or delete the instance`,
  );
}

/** Takes the ports before the start: a guest must not run without its ports. Throws `PortInUse`. */
export async function startPublished(machine: Machine, options: Publishing, start: () => Promise<Run>): Promise<Run> {
  const target = targetOf(machine);
  if (target === undefined) return linked(machine, await start());
  const forwarder = await publishByAgent({ record: machine.record, target, log: machine.log, ...options });
  try {
    return linked(machine, await start(), forwarder);
  } catch (error) {
    await forwarder.close();
    throw error;
  }
}

/** For a machine that runs already. */
export function adoptPublished(machine: Machine, options: Publishing, run: Run): Run {
  const target = targetOf(machine);
  if (target === undefined) return linked(machine, run);
  return linked(machine, run, publishAgain({ record: machine.record, target, log: machine.log, ...options }));
}

/** Undefined: the agent forwards no ports for this machine. */
function targetOf({ record: { network } }: Machine): (() => Promise<string>) | undefined {
  return network?.kind === 'nat' ? () => Promise.resolve(network.address) : undefined;
}

function linked({ record: { network } }: Machine, run: Run, forwarder?: PortForwarder): Run {
  if (network === undefined) return run;
  const { dial: _byHypervisor, reach: _alsoByHypervisor, onAddress: _inItsNetworks, ...rest } = run;
  const ended = run.ended.then(async (end) => {
    await forwarder?.close();
    return end;
  });
  if (network.kind === 'bridge') return { ...rest, ended };
  return { ...rest, ended, dial: (port) => connectTcp({ host: network.address, port }, `port ${port} of the guest`) };
}

/** On the operator's bridge, a guest gets its address from a foreign DHCP server, perhaps late, and all hosts there reach it directly. */
function noPublishedPorts(instanceId: string): DriverError {
  return new DriverError(
    'NotPossible',
    `cannot publish ports of ${instanceId}: guests of this host are on its own bridge, and are reached at their addresses there; ask for no ports, or for another host`,
  );
}
