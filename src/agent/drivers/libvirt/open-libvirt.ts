// Opens a connection to a libvirt daemon: connects, authenticates and registers for events.

import type { Clock } from '../../../base/clock.ts';
import type { DiskErrorEvent, LifecycleEvent, Libvirt } from './libvirt.ts';
import { RemoteLibvirt } from './remote-libvirt.ts';
import { call, diskErrorOf, lifecycleOf, procedures } from './wire/remote-protocol.ts';
import { connectRpc, LibvirtError, type Rpc } from './wire/rpc.ts';
import { xdrWriter } from './wire/xdr.ts';

export interface LibvirtOptions {
  /** The path of the daemon's socket. */
  readonly path: string;
  /** Such as `qemu:///system`. */
  readonly uri: string;
  readonly clock: Clock;
  /** Absent: the connection does not register for these events. */
  readonly onLifecycle?: (event: LifecycleEvent) => void;
  readonly onDiskError?: (event: DiskErrorEvent) => void;
}

const auth = { none: 0, polkit: 2 } as const;

/** `virDomainEventID` of libvirt-domain.h. */
const eventIds = { lifecycle: 0, diskError: 6 } as const;
const callTimeoutMs = 30_000;

export async function openLibvirt({ path, uri, clock, onLifecycle, onDiskError }: LibvirtOptions): Promise<Libvirt> {
  const rpc = await connectRpc({
    path,
    clock,
    timeoutMs: callTimeoutMs,
    onEvent(procedure, body) {
      if (procedure === procedures.eventLifecycle) onLifecycle?.(lifecycleOf(body));
      if (procedure === procedures.eventDiskError) onDiskError?.(diskErrorOf(body));
    },
  });
  try {
    await letIn(rpc, path);
    await call(rpc, 'connectOpen', xdrWriter().maybeString(uri).uint(0));
    if (onLifecycle) await call(rpc, 'eventRegister', xdrWriter().int(eventIds.lifecycle).uint(0));
    if (onDiskError) await call(rpc, 'eventRegister', xdrWriter().int(eventIds.diskError).uint(0));
  } catch (error) {
    rpc.close();
    throw error;
  }
  return new RemoteLibvirt(rpc);
}

/** Root needs no authentication; for other users the daemon's configuration may demand polkit. */
async function letIn(rpc: Rpc, path: string): Promise<void> {
  const kinds = (await call(rpc, 'authList')).array((from) => from.int());
  if (kinds.length === 0 || kinds.includes(auth.none)) return;
  if (!kinds.includes(auth.polkit))
    throw new LibvirtError(
      `libvirt at ${path} asks for a login; set auth_unix_rw = "none" in libvirtd.conf, or run as root`,
    );
  await call(rpc, 'authPolkit');
}
