// Chooses the accelerator of guests under libvirt: KVM only if the probe guest ran under KVM and libvirt offers it too.

import type { Accelerator } from '../../../api/agent-protocol.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import { type HostLook, onlyKvm } from '../qemu/host-look.ts';
import { driverErrorOf, type Connection } from './connection.ts';

export class LibvirtAccelerator {
  readonly #connection: Connection;
  readonly #hostLook: HostLook;
  readonly #setting: AcceleratorSetting;
  #offersKvm: Promise<boolean> | undefined;

  constructor(options: {
    readonly connection: Connection;
    readonly hostLook: HostLook;
    readonly setting: AcceleratorSetting;
  }) {
    this.#connection = options.connection;
    this.#hostLook = options.hostLook;
    this.#setting = options.setting;
  }

  /** Throws `HypervisorFailed`. */
  async choose(): Promise<Accelerator> {
    try {
      return await this.#choose();
    } catch (error) {
      throw driverErrorOf('choose how guests run', error);
    }
  }

  async #choose(): Promise<Accelerator> {
    const chosen = await this.#hostLook.chosenAccelerator();
    if (chosen === 'tcg') return chosen;
    if (await this.#isKvmOffered()) return 'kvm';
    if (this.#setting === 'kvm') throw new DriverError('HypervisorFailed', onlyKvm('libvirt does not offer it'));
    return 'tcg';
  }

  /** Asks libvirt once per run of the agent. */
  #isKvmOffered(): Promise<boolean> {
    this.#offersKvm ??= this.#connection
      .ask((libvirt) => libvirt.capabilities())
      .then(
        (capabilities) => /<domain type=['"]kvm['"]/.test(capabilities),
        (error: unknown) => {
          this.#offersKvm = undefined; // missing parts may be installed later
          throw error;
        },
      );
    return this.#offersKvm;
  }
}
