// Opens the drivers that the configuration of an agent names, each with a folder of its own.

import { join } from 'node:path';
import type { Logger } from '../base/log.ts';
import { environment, system, systemClock, systemPrng } from '../base/system.ts';
import { makeFolder } from './agent-folders.ts';
import type { AgentConfig } from './config.ts';
import type { Driver } from './drivers/driver.ts';
import type { drivers as driverRegistry } from './drivers/registry.ts';
import type { GuestUsers } from './host/guest-user.ts';
import { earlierBuild } from './images/build/build.ts';
import type { CredentialFor } from './images/credentials/image-credentials.ts';
import type { ImageCache } from './images/image-cache.ts';
import type { GuestGuards } from './network/guest-guards.ts';
import type { HostNetwork } from './network/host-network.ts';
import type { VolumeDisk } from './volumes/files/memory-volume-files.ts';

export async function openDrivers(
  config: AgentConfig,
  {
    registry,
    images,
    imageCredentials,
    log,
    network,
    pretended,
    vendorData,
    users,
    guards: { hostGuard, networkGuard, containerGuard },
    passable,
  }: {
    readonly registry: typeof driverRegistry;
    readonly images: ImageCache;
    readonly imageCredentials: CredentialFor;
    readonly log: Logger;
    readonly network: HostNetwork | undefined;
    readonly pretended: VolumeDisk | undefined;
    readonly vendorData: (() => Promise<string>) | undefined;
    readonly users: GuestUsers | undefined;
    readonly guards: GuestGuards;
    readonly passable: boolean;
  },
): Promise<Driver[]> {
  const opened: Driver[] = [];
  for (const name of config.drivers) {
    const open = registry[name];
    if (open === undefined) continue; // refused by checkedConfig
    const directory = join(config.dataDirectory, name);
    await makeFolder(directory, { passable });
    opened.push(
      open({
        directory,
        images,
        imageCredentials,
        clock: systemClock,
        prng: systemPrng(),
        log: log.with({ driver: name }),
        bindAddress: config.publishAddress,
        accelerator: config.accelerator,
        probeImage: () => earlierBuild('tiny', config.imageRoots),
        portRange: config.portRange,
        silenceMsMax: config.silenceMsMax,
        ...(config.zones === undefined ? {} : { zones: config.zones }),
        ...(network === undefined ? {} : { network }),
        ...(vendorData === undefined ? {} : { vendorData }),
        ...(users === undefined ? {} : { users }),
        ...(hostGuard === undefined ? {} : { hostGuard }),
        engineSocket: { configured: config.containerEngine, dockerHost: environment()['DOCKER_HOST'] },
        ...(config.containerNetwork === undefined || containerGuard === undefined
          ? {}
          : { containerNetwork: { name: config.containerNetwork, guard: containerGuard } }),
        libvirt: {
          uri: config.libvirtUri,
          network: config.libvirtNetwork,
          ...(networkGuard === undefined ? {} : { networkGuard }),
        },
        ...(pretended === undefined ? {} : { pretendedVolumes: pretended }),
        filesystems: pretended === undefined && system.userId() === 0,
      }),
    );
  }
  return opened;
}
