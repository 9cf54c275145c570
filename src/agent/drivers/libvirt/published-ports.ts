// How a guest's ports are published: by QEMU itself on the network `user`, by a forwarder of the agent's on a network of libvirt's. QEMU's
// stay published while no agent runs; the agent's come back when it does.

import { sleep, type Clock } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../driver.ts';
import type { GuestRecord } from '../vm/guest-record.ts';
import { portInUse } from '../vm/ports.ts';
import type { Connection } from './connection.ts';
import type { Domain } from './libvirt.ts';
import { forwardPorts, type PortForwarder, PortTaken } from './port-forwarder.ts';
import { LibvirtError } from './rpc.ts';

type Published = Pick<GuestRecord, 'instanceId' | 'ports'>;

/** libvirt's name of the one network card: the alias of the first is always "net0". */
export const netdev = 'hostnet0';

/** Has QEMU publish what it does not publish yet; a guest that has ended meanwhile needs none. Throws `PortInUse` and `HypervisorFailed`. */
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

/** As "tcp 127.0.0.1 20022 22", from what `info usernet` of QEMU's monitor prints. */
export function forwardsOf(said: string): ReadonlySet<string> {
  const rows = said.matchAll(/^\s*(TCP|UDP)\[HOST_FORWARD\]\s+\d+\s+(\S+)\s+(\d+)\s+\S+\s+(\d+)\s/gm);
  return new Set(
    [...rows].map(([, protocol = '', address, hostPort, guestPort]) =>
      [protocol.toLowerCase(), address, hostPort, guestPort].join(' '),
    ),
  );
}

interface ForwarderOptions {
  readonly record: Published;
  readonly bindAddress: string;
  readonly target: () => Promise<string | undefined>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Throws `PortInUse`. */
export async function publishByAgent({ record, ...options }: ForwarderOptions): Promise<PortForwarder> {
  try {
    return await forwardPorts({ ports: record.ports, ...options });
  } catch (error) {
    if (error instanceof PortTaken) throw portInUse(record.instanceId, error.port, options.bindAddress);
    throw error;
  }
}

const retryMs = 5000;

/** For a guest that runs already: tries again until its ports are free. */
export function publishAgain(options: ForwarderOptions): PortForwarder {
  const { clock, log } = options;
  const closing = new AbortController();
  const publish = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        const forwarder = await publishByAgent(options);
        await new Promise<void>((resolve) => {
          if (closing.signal.aborted) resolve();
          else closing.signal.addEventListener('abort', () => resolve(), { once: true });
        });
        return await forwarder.close();
      } catch (error) {
        log.warn('cannot publish the ports of a guest; trying again', { error: describeError(error) });
        await sleep(clock, retryMs, closing.signal);
      }
    }
  };
  const published = publish();
  return {
    close() {
      closing.abort();
      return published;
    },
  };
}
