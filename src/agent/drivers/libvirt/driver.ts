// The libvirt driver: virtual machines that libvirt runs on this host.

import type { Driver } from '../driver.ts';
import { createVmDriver } from '../guest-life/driver.ts';
import type { VmDriverOptions } from '../guest-life/hands.ts';
import { createConnection } from './connection.ts';
import { createLibvirtHypervisor, type LibvirtHypervisorOptions } from './hypervisor.ts';
import { libvirtAddress } from './wire/libvirt-uri.ts';

export type LibvirtDriverOptions = Omit<VmDriverOptions, 'createHypervisor' | 'directoryMode'> &
  Pick<
    LibvirtHypervisorOptions,
    | 'prng'
    | 'accelerator'
    | 'probeImage'
    | 'hostNetwork'
    | 'networkGuard'
    | 'logDirectory'
    | 'configurationDirectory'
    | 'detachPatienceMs'
  > & {
    /** Default qemu:///system. */
    readonly uri?: string;
    /** Of libvirt's, for guests that have no place in the host's. Default `default`. */
    readonly network?: string;
  };

const recoverPatienceMs = 3000; // the recovery tries again

/** Throws `HypervisorFailed` for a URI of another host. */
export function createLibvirtDriver(options: LibvirtDriverOptions): Driver {
  const { clock, prng, log } = options;
  const address = libvirtAddress(options.uri ?? 'qemu:///system');
  const connection = createConnection({ address, clock, prng, log });
  const driver = createVmDriver({
    ...options,
    directoryMode: 0o711, // libvirt runs QEMU as a user of its own
    createHypervisor: (hands) =>
      createLibvirtHypervisor({
        ...options,
        ...hands,
        connection,
        network: options.network ?? 'default',
        bindAddress: options.bindAddress ?? '127.0.0.1',
      }),
  });
  return {
    ...driver,
    async recover() {
      await connection.ask(async () => {}, recoverPatienceMs); // while libvirt is away, nothing can be said of any guest
      await driver.recover();
    },
    async close() {
      connection.stopWaiting();
      await driver.close();
      connection.close();
    },
  };
}
