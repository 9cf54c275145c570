// The QEMU driver: virtual machines that are QEMU processes of this agent's own.

import type { Driver } from '../driver.ts';
import { createVmDriver } from '../vm/driver.ts';
import type { VmDriverOptions } from '../vm/hands.ts';
import { createQemu, type QemuOptions } from './hypervisor.ts';

export type QemuDriverOptions = Omit<VmDriverOptions, 'createHypervisor'> &
  Pick<QemuOptions, 'accelerator' | 'qemuProgram' | 'network' | 'detachPatienceMs'>;

export function createQemuDriver(options: QemuDriverOptions): Driver {
  return createVmDriver({ ...options, createHypervisor: (hands) => createQemu({ ...options, ...hands }) });
}
