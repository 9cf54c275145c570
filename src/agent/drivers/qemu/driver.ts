// The QEMU driver: virtual machines that are QEMU processes of this agent's own.

import type { Driver } from '../driver.ts';
import { createVmDriver } from '../guest-life/driver.ts';
import type { VmDriverOptions } from '../guest-life/hands.ts';
import { createQemu, type QemuOptions } from './hypervisor.ts';

export type QemuDriverOptions = Omit<VmDriverOptions, 'createHypervisor'> &
  Pick<
    QemuOptions,
    | 'accelerator'
    | 'qemuProgram'
    | 'kvmDevice'
    | 'probeTimeoutMs'
    | 'probeImage'
    | 'network'
    | 'detachPatienceMs'
    | 'users'
    | 'hostGuard'
  >;

export function createQemuDriver(options: QemuDriverOptions): Driver {
  // A user of the guest's own must get to the files that were given to it.
  const passable = options.users === undefined ? {} : ({ directoryMode: 0o711 } as const);
  return createVmDriver({ ...options, ...passable, createHypervisor: (hands) => createQemu({ ...options, ...hands }) });
}
