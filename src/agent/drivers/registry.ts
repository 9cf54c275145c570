// The drivers an agent can have: one line each.

import { readFile } from 'node:fs/promises';
import { assert } from '../../base/assert.ts';
import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { CredentialFor } from '../images/credentials/image-credentials.ts';
import type { ImageCache } from '../images/image-cache.ts';
import type { HostGuard } from '../network/host-guard.ts';
import type { ContainerNetwork } from './container/container-config.ts';
import type { HostNetwork } from '../network/host-network.ts';
import type { VolumeDisk } from '../volumes/files/memory-volume-files.ts';
import { createContainerDriver } from './container/driver.ts';
import type { EngineSocketOptions } from './container/engine-socket.ts';
import type { AcceleratorSetting } from './accelerator-setting.ts';
import type { Driver } from './driver.ts';
import { createFakeDriver } from './fake/driver.ts';
import { createFakeWorld } from './fake/world.ts';
import { createLibvirtDriver } from './libvirt/driver.ts';
import { createQemuDriver } from './qemu/driver.ts';
import type { ProbeImage } from './qemu/kvm-probe.ts';
import type { GuestUsers } from '../host/guest-user.ts';
import { createZonesDriver } from './zones/driver.ts';
import type { ZonesSettings } from './zones/host-look.ts';

export interface DriverContext {
  /** For this driver's guests alone. */
  readonly directory: string;
  readonly images: ImageCache;
  /** Of this host, for images that a driver has fetched by itself. */
  readonly imageCredentials?: CredentialFor;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Where published ports listen. */
  readonly bindAddress?: string;
  /** Of virtual machines, where the driver can choose. Absent: `auto`. */
  readonly accelerator?: AcceleratorSetting;
  /** An image with a kernel, where one is at hand: KVM is tried with it. */
  readonly probeImage?: () => Promise<ProbeImage | undefined>;
  /** How long a virtual machine may show no sign of life before that is said of it. */
  readonly silenceMsMax?: number;
  readonly portRange?: { readonly first: number; readonly last: number };
  /** Where there is the driver `zones`. */
  readonly zones?: ZonesSettings;
  /** Where the container engine listens, when that was said. */
  readonly engineSocket: EngineSocketOptions;
  /** Which network of the engine guests are on. Absent: its own. */
  readonly containerNetwork?: ContainerNetwork;
  /** Of this host, for drivers whose guests can be connected to it. Absent: networks of their own. */
  readonly network?: HostNetwork;
  /** Of this host's operator, for cloud-init in its virtual machines. */
  readonly vendorData?: () => Promise<string>;
  /** Each guest is run by one of them, where the driver itself runs guests. Absent: by the agent's own. */
  readonly users?: GuestUsers;
  /** Keeps them from what listens on this host. */
  readonly hostGuard?: HostGuard;
  /** Which libvirt, and which of its networks. */
  readonly libvirt?: { readonly uri: string; readonly network: string; readonly networkGuard?: HostGuard };
  /** Where all guests of the host are pretended: its volumes, pretended too. */
  readonly pretendedVolumes?: VolumeDisk;
  /** The agent may mount volumes with a file system. */
  readonly filesystems?: boolean;
}

export const drivers: Readonly<Record<string, (context: DriverContext) => Driver>> = {
  qemu: (context) => createQemuDriver(context),
  zones(context) {
    assert(context.zones !== undefined, 'the driver zones has its settings'); // checked with the configuration
    return createZonesDriver({ ...context, settings: context.zones });
  },
  container: ({ engineSocket: socket, containerNetwork: ownNetwork, ...context }) =>
    createContainerDriver({
      ...context,
      socket,
      filesystems: context.filesystems === true,
      ...(ownNetwork === undefined ? {} : { ownNetwork }),
    }),
  libvirt: ({ libvirt, network: hostNetwork, ...context }) =>
    createLibvirtDriver({ ...context, ...libvirt, ...(hostNetwork === undefined ? {} : { hostNetwork }) }),
  fake({ clock, prng, pretendedVolumes: disk }) {
    const world = createFakeWorld({ clock, ...(disk === undefined ? {} : { volumeDisk: () => disk }) });
    return createFakeDriver({ world, host: 'this', prng, readRunDisk: (path) => readFile(path) });
  },
};
