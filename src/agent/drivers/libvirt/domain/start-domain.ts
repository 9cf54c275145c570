// The single steps of a start under libvirt, and what their failures mean to people.

import { join } from 'node:path';
import { DriverError } from '../../../host/driver-error.ts';
import { diskFull } from '../../guest-life/disk/disk.ts';
import type { Machine } from '../../guest-life/hypervisor.ts';
import { type Connection, isLost } from '../connection.ts';
import { consoleSocket, socketPathBytesMax } from './domain-xml.ts';
import type { Domain } from '../libvirt.ts';
import { LibvirtError } from '../wire/rpc.ts';
import { XmlError } from '../wire/xml.ts';

/** The last words of QEMU when libvirt, late with the end of the previous run, ends the new process instead. */
const endedForPreviousRun = /terminating on signal 15 from pid \d+ \((libvirtd|virtqemud)\)/;

/** If the answer is lost with the connection, the state of the domain says whether the start was carried out. */
export async function startDomain(connection: Connection, domain: Domain, tries = 2): Promise<void> {
  try {
    await connection.apart((libvirt) => libvirt.start(domain));
  } catch (error) {
    if (tries > 1 && error instanceof LibvirtError && endedForPreviousRun.test(error.message))
      return startDomain(connection, domain, tries - 1);
    if (!isLost(error)) throw error;
    const { state } = await connection.ask((libvirt) => libvirt.state(domain));
    if (state === 'shutoff') throw error;
  }
}

export async function ensureNetwork(connection: Connection, network: string, what: string): Promise<void> {
  const ensured = await connection.ask((libvirt) => libvirt.ensureNetwork(network));
  if (ensured === undefined) throw new DriverError('HypervisorFailed', `cannot ${what}: ${noNetwork(network)}`);
}

export const noNetwork = (network: string): string =>
  `libvirt has no network "${network}"; define it ("virsh net-define /usr/share/libvirt/networks/default.xml" makes "default"), or set LIBVIRT_NETWORK to another, or to "user" for none`;

/** Throws when the path of the console's socket in this directory is too long for the kernel. */
export function checkPaths(directory: string, what: string): void {
  const longest = join(directory, consoleSocket);
  const bytes = Buffer.byteLength(longest);
  if (bytes <= socketPathBytesMax) return;
  throw new DriverError(
    'HypervisorFailed',
    `cannot ${what}: the path of a guest's console, ${longest}, has ${bytes} bytes, and a socket's may have ${socketPathBytesMax}; choose a shorter data directory for the agent`,
  );
}

/** The error of a failed start as the driver reports it. */
export function startFailure({ record, directory }: Machine, error: unknown): unknown {
  const what = `cannot start ${record.instanceId}`;
  if (error instanceof LibvirtError) {
    if (/No space left/i.test(error.message)) return diskFull(what, directory);
    return new DriverError('HypervisorFailed', `${what}: libvirt refuses: ${error.message}`, error);
  }
  if (error instanceof XmlError)
    return new DriverError('HypervisorFailed', `${what}: ${error.message}; choose another data directory`, error);
  return error;
}
