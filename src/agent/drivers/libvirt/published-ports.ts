// Publishes a guest's ports through QEMU itself, on the network `user`. They stay published while no agent runs. (On a network of libvirt, a
// forwarder of the agent publishes them: src/agent/network/publish-ports.ts.)

import { DriverError } from '../../host/driver-error.ts';
import type { GuestRecord } from '../guest-life/guest-record.ts';
import { forwardsOf } from '../guest-life/ways-in/forwards.ts';
import { portInUse } from '../../host/port-in-use.ts';
import type { Connection } from './connection.ts';
import type { Domain } from './libvirt.ts';
import { LibvirtError } from './wire/rpc.ts';

type Published = Pick<GuestRecord, 'instanceId' | 'ports'>;

/** The network of the guest's only card: libvirt always gives the first card the alias "net0". */
export const netdev = 'hostnet0';

/** Makes QEMU publish the missing ports; does nothing for a guest that has ended. Throws `PortInUse` and `HypervisorFailed`. */
export async function publishByQemu(
  connection: Connection,
  domain: Domain,
  wanted: { readonly record: Published; readonly bindAddress: string },
): Promise<void> {
  try {
    await addForwards(connection, domain, wanted);
  } catch (error) {
    if (!(error instanceof LibvirtError)) throw error;
    const { state } = await connection.ask((libvirt) => libvirt.state(domain));
    if (state !== 'shutoff') throw error;
  }
}

async function addForwards(
  connection: Connection,
  domain: Domain,
  { record, bindAddress }: { readonly record: Published; readonly bindAddress: string },
): Promise<void> {
  if (record.ports.length === 0) return;
  await connection.apart(async (libvirt) => {
    const there = forwardsOf(await libvirt.monitor(domain, 'info usernet'));
    for (const port of record.ports) {
      const { protocol, hostPort, guestPort } = port;
      if (there.has(`${protocol} ${bindAddress} ${hostPort} ${guestPort}`)) continue;
      const rule = `${protocol}:${bindAddress}:${hostPort}-:${guestPort}`;
      const said = (await libvirt.monitor(domain, `hostfwd_add ${netdev} ${rule}`)).trim();
      if (said === '') continue;
      if (/could not set up host forwarding rule/i.test(said)) throw portInUse(record.instanceId, port, bindAddress);
      throw new DriverError(
        'HypervisorFailed',
        `cannot publish port ${guestPort} of ${record.instanceId}: QEMU says "${said.slice(0, 300)}"; the network "user" needs a QEMU with user-mode networking of its own (libslirp) and no slirp_helper in qemu.conf`,
      );
    }
  });
}
