// Where the libvirt of a URI listens: pure. Only the libvirt of this host is driven, because disks and consoles are files of this host.

import { DriverError } from '../../../host/driver-error.ts';

/** Per-driver daemons first, then the one daemon for everything: where both run, the one is a proxy of the others. */
const systemSockets = ['/run/libvirt/virtqemud-sock', '/run/libvirt/libvirt-sock'];

export interface LibvirtAddress {
  /** Tried in turn. */
  readonly sockets: readonly string[];
  /** As the daemon itself is to be told. */
  readonly uri: string;
}

/** As libvirt's own: `qemu:///system`, or `qemu:///system?socket=/path`. Throws `DriverError` `HypervisorFailed`. */
export function libvirtAddress(text: string): LibvirtAddress {
  const found = /^qemu(?:\+unix)?:\/\/\/system(?:\?socket=([^&#]*))?$/.exec(text);
  if (found === null) throw refused(text, 'only the libvirt of this host can be driven: qemu:///system');
  const [, socket] = found;
  if (socket === undefined) return { sockets: systemSockets, uri: 'qemu:///system' };
  const path = decoded(socket);
  if (path === undefined || !path.startsWith('/') || path.includes('\0'))
    throw refused(text, 'its "socket" must be the absolute path of a socket');
  return { sockets: [path], uri: 'qemu:///system' };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined; // a "%" with something else behind it
  }
}

const refused = (text: string, why: string): DriverError =>
  new DriverError('HypervisorFailed', `cannot use the libvirt URI "${text}" (LIBVIRT_URI): ${why}`);
