// The parts of an agent that its configuration determines: images, network, files of volumes and moves, and the measures of the machine.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../base/log.ts';
import { randomSecret, system, systemClock, systemPrng } from '../base/system.ts';
import type { AgentConfig } from './config.ts';
import type { ServerAccess } from './enrolment/server-access.ts';
import { moveIdentity } from './enrolment/move-identity.ts';
import { createImageCache, type HostImageCache } from './images/create-image-cache.ts';
import type { CredentialFor } from './images/credentials/image-credentials.ts';
import { createHttpGet } from './images/fetch/http-get.ts';
import type { RemoteFile } from './images/fetch/image-source.ts';
import { firstAddress, measure } from './measure.ts';
import { TlsMoves } from './migration/direct/direct-moves.ts';
import { createHostIncomingFiles } from './migration/host-incoming-files.ts';
import { createMemoryIncomingFiles } from './migration/memory-incoming-files.ts';
import type { IncomingFiles } from './migration/moved-files.ts';
import { createBridgeNetwork } from './network/bridge-network.ts';
import type { HostNetwork } from './network/host-network.ts';
import { createNatNetwork } from './network/nat-network.ts';
import type { Measurement } from './session/agent-options.ts';
import { createHostVolumeFiles } from './volumes/files/host-volume-files.ts';
import { createMemoryVolumeFiles, type VolumeDisk } from './volumes/files/memory-volume-files.ts';
import type { VolumeFiles } from './volumes/files/volume-files.ts';

interface ImageParts {
  /** The URL of the server in use: where uploaded images are. */
  readonly serverUrl: () => string;
  readonly access: ServerAccess;
  readonly credentials: CredentialFor;
  readonly log: Logger;
}

export function imageCacheOf(config: AgentConfig, parts: ImageParts): HostImageCache {
  const { dataDirectory, hostName, imageCacheGiBMax } = config;
  const { serverUrl, access, credentials, log } = parts;
  return createImageCache({
    directory: join(dataDirectory, 'images'),
    fileRoots: config.imageRoots,
    guestRoots: () => guestRootsIn(dataDirectory),
    ...(imageCacheGiBMax === undefined ? {} : { bytesMax: imageCacheGiBMax * 1024 ** 3 }),
    get: createHttpGet({ privateAddresses: config.imagePrivateAddresses }),
    credentials,
    uploaded: (source) => uploadedFile(source, { serverUrl: serverUrl(), hostName, access }),
    checksumsRequired: config.imageChecksums === 'required',
    clock: systemClock,
    prng: systemPrng(),
    log,
  });
}

/** Uploaded images come from this agent's server, whatever addresses other images may come from. */
function uploadedFile(
  source: string,
  {
    serverUrl,
    hostName,
    access: { token, trust },
  }: { readonly serverUrl: string; readonly hostName: string; readonly access: ServerAccess },
): RemoteFile {
  const hex = source.slice('berth://sha256/'.length);
  return {
    url: `${serverUrl}/v1/hosts/${hostName}/image-content/${hex}`,
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    get: createHttpGet({ privateAddresses: 'allow', trust }),
    digest: `sha256:${hex}`,
  };
}

/** Every folder in which a driver may have guests, also of drivers that are no longer configured. Volumes have no image below them. */
export async function guestRootsIn(dataDirectory: string): Promise<string[]> {
  const entries = await readdir(dataDirectory, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !otherFolders.includes(entry.name))
    .map(({ name }) => join(dataDirectory, name));
}

const otherFolders = ['images', 'volumes', 'runs', 'repositories'];

/** `pretended`: the guests of this host are not real, and neither are its files. `passable`: hypervisors run as other users. */
export function filesOf(
  { dataDirectory }: AgentConfig,
  { pretended, passable }: { readonly pretended: VolumeDisk | undefined; readonly passable: boolean },
): { readonly volumeFiles: VolumeFiles; readonly incomingFiles: IncomingFiles } {
  const clock = systemClock;
  if (pretended !== undefined)
    return {
      volumeFiles: createMemoryVolumeFiles({ disk: pretended, clock }),
      incomingFiles: createMemoryIncomingFiles(new Map()),
    };
  const directoryMode = passable ? 0o711 : 0o700;
  return {
    volumeFiles: createHostVolumeFiles({ directory: join(dataDirectory, 'volumes'), directoryMode, clock }),
    incomingFiles: createHostIncomingFiles({ directory: join(dataDirectory, 'incoming'), directoryMode }),
  };
}

/** Connections to the other host of a move. */
export async function directMovesOf(config: AgentConfig, log: Logger): Promise<TlsMoves> {
  const { dataDirectory, moveAddress, address, movePorts } = config;
  return new TlsMoves({
    identity: await moveIdentity(dataDirectory),
    address: moveAddress === 'off' ? undefined : (moveAddress ?? address ?? firstAddress()),
    ports: movePorts,
    ...{ clock: systemClock, prng: systemPrng(), log },
  });
}

/** Measures the machine. What the configuration states is not measured. */
export function measured(config: AgentConfig): Promise<Measurement> {
  const { dataDirectory, capacity, reserved, address, machineId, bootIdFile, devices, pciGpus, numaCells, traits } =
    config;
  return measure({
    ...{ dataDirectory, devices, pciGpus, numaCells, traits, randomSecret },
    processArchitecture: system.architecture(),
    ...(capacity ? { capacity } : {}),
    ...(reserved ? { reserved } : {}),
    ...(address === undefined ? {} : { address }),
    ...(machineId === undefined ? {} : { machineId }),
    ...(bootIdFile === undefined ? {} : { bootIdPath: bootIdFile }),
  });
}

/** Undefined: guests use networks of their hypervisor. */
export function hostNetwork(config: AgentConfig, log: Logger): HostNetwork | undefined {
  const clock = systemClock;
  const [kind, bridge] = config.network.split(':');
  if (kind === 'user') return undefined;
  if (bridge !== undefined) return createBridgeNetwork({ bridge, clock });
  return createNatNetwork({
    subnet: config.natSubnet,
    denied: config.natDenied,
    metadataTokens: config.metadataTokens,
    owner: config.dataDirectory,
    runDirectory: '/run/berth-nat',
    clock,
    log,
    randomSecret,
  });
}
