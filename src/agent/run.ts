// The agent as a process: real clock, real files, real sockets. It puts the parts together and decides nothing.

import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createClient } from '../api/client/client.ts';
import { ApiError } from '../api/errors.ts';
import { crossesInClear } from '../api/client/plain-http.ts';
import { Servers, serverUrls } from '../api/client/servers.ts';
import type { Clock } from '../base/clock.ts';
import type { Prng } from '../base/prng.ts';
import { nearest } from '../api/nearest.ts';
import { describeError, type Logger } from '../base/log.ts';
import { createCarried } from '../base/carried.ts';
import {
  adviceOnSecretFile,
  certificatesAt,
  environment,
  randomSecret,
  system,
  systemClock,
  systemFetch,
  systemPrng,
  trustCertificates,
} from '../base/system.ts';
import { version } from '../base/version.ts';
import { type Agent, createAgent } from './agent.ts';
import type { NameOf } from './host/named.ts';
import { fetchUsersOf, guestUsersOf, makeFolder, needsPassage } from './agent-folders.ts';
import { moveIdentity } from './enrolment/move-identity.ts';
import { openServerAccess, type ServerAccess } from './enrolment/server-access.ts';
import { claimDataDirectory } from './claim-data-directory.ts';
import type { AgentConfig } from './config.ts';
import type { Driver } from './drivers/driver.ts';
import type { GuestUsers } from './host/guest-user.ts';
import { drivers as driverRegistry } from './drivers/registry.ts';
import { type CredentialFor, hostCredentials } from './images/credentials/image-credentials.ts';
import { earlierBuild } from './images/build/build.ts';
import { createImageCache } from './images/create-image-cache.ts';
import { createHttpGet } from './images/fetch/http-get.ts';
import type { ImageCache } from './images/image-cache.ts';
import type { RemoteFile } from './images/fetch/image-source.ts';
import { createBridgeNetwork } from './network/bridge-network.ts';
import { type GuestGuards, guestGuards } from './network/guest-guards.ts';
import type { HostNetwork } from './network/host-network.ts';
import { createNatNetwork } from './network/nat-network.ts';
import { placedGuests } from './drivers/guest-life/placed-guests.ts';
import { parseNatSubnet, parseSubnet } from './network/subnet.ts';
import { createHostIncomingFiles } from './migration/host-incoming-files.ts';
import { createMemoryIncomingFiles } from './migration/memory-incoming-files.ts';
import { TlsMoves } from './migration/direct/direct-moves.ts';
import { ledgerFileAt } from './ledger/ledger-file.ts';
import { knownServersAt } from './link/known-servers.ts';
import { holdLinks } from './link/links.ts';
import { firstAddress, measure } from './measure.ts';
import { pretendedImages } from './images/pretended-images.ts';
import { createPreloader } from './preload.ts';
import { createHostRunFiles } from './runner/files/host-run-files.ts';
import { openRepositories } from './runner/repository/open-repositories.ts';
import { createExecSessions } from './access/exec-sessions.ts';
import { createHostVolumeFiles } from './volumes/files/host-volume-files.ts';
import { createMemoryVolumeFiles, type VolumeDisk } from './volumes/files/memory-volume-files.ts';
import { openWatchdog } from './watchdog/open-watchdog.ts';
import { vendorDataIn } from './vendor-data.ts';

export interface RunningAgent {
  readonly hostName: string;
  /** Resolves when the agent cannot go on; close it then. */
  readonly failed: Promise<Error>;
  /** How what runs a guest of this host says that it stands, for people; undefined: it does not say, or nothing runs. */
  describeGuest(instanceId: string): Promise<string | undefined>;
  /** Guests run on. */
  close(): Promise<void>;
}

/** Resolves when the agent is at work, whether or not the control plane answers. Throws, with nothing left open, when it cannot be. */
export async function startAgent(
  config: AgentConfig,
  { log, drivers: registry = driverRegistry }: { readonly log: Logger; readonly drivers?: typeof driverRegistry },
): Promise<RunningAgent> {
  checkConfig(config, registry);
  checkNetwork(config);
  const vendorData = await vendorDataOf(config);
  const imageCredentials = hostCredentials(config.imageCredentials, systemClock);
  const { hostName, dataDirectory } = config;
  const token = await tokenOf(config, log);
  await trustAuthority(config);
  const access = await openServerAccess(config, {
    ...{ fetch: (url, init) => systemFetch(url, init), token, clock: systemClock, prng: systemPrng(), log },
  });
  const users = guestUsersOf(config.guestUsers, system.userId());
  const passable = needsPassage(config.drivers, { ownUsers: users !== undefined });
  const volumeDirectory = join(dataDirectory, 'volumes');
  for (const folder of [dataDirectory, join(dataDirectory, 'images'), volumeDirectory])
    await makeFolder(folder, { passable });
  const clock = systemClock;
  const prng = systemPrng();
  const claimed = await claimDataDirectory(dataDirectory, { clock, prng });
  const stopping = new AbortController();
  const background: Promise<void>[] = [];
  let agent: Agent | undefined;
  try {
    const servers = serversOf(config, { clock, prng, log });
    const images = createImageCache({
      directory: join(dataDirectory, 'images'),
      fileRoots: config.imageRoots,
      guestRoots: () => guestRootsIn(dataDirectory),
      ...(config.imageCacheGiBMax === undefined ? {} : { bytesMax: config.imageCacheGiBMax * 1024 ** 3 }),
      get: createHttpGet({ privateAddresses: config.imagePrivateAddresses }),
      credentials: imageCredentials,
      uploaded: (source) => uploadedFile(source, { serverUrl: servers.current, hostName, access }),
      checksumsRequired: config.imageChecksums === 'required',
      clock,
      prng,
      log,
    });
    const network = hostNetwork(config, log);
    // Of all drivers before any is at work: what one guest has must not be given to the guest of another driver.
    for (const guest of await placedGuests(await guestRootsIn(dataDirectory))) network?.adopt(guest);
    const pretended: VolumeDisk | undefined = config.drivers.every((name) => name === 'fake') ? new Map() : undefined;
    const guards = guestGuards(config, { agentId: claimed.agentId, userId: system.userId(), users, clock, log });
    const drivers = await openDrivers(config, {
      registry,
      images,
      imageCredentials,
      log,
      network,
      pretended,
      vendorData,
      users,
      guards,
      passable,
    });
    const volumeFiles =
      pretended === undefined
        ? createHostVolumeFiles({ directory: volumeDirectory, directoryMode: passable ? 0o711 : 0o700, clock })
        : createMemoryVolumeFiles({ disk: pretended, clock });
    const incomingFiles =
      pretended === undefined
        ? createHostIncomingFiles({
            directory: join(dataDirectory, 'incoming'),
            directoryMode: passable ? 0o711 : 0o700,
          })
        : createMemoryIncomingFiles(new Map());
    const client = createClient({
      fetch: access.fetch,
      url: servers,
      userAgent: `berth-agent/${version}`,
      ...(access.token === undefined ? {} : { token: access.token }),
    });
    background.push(access.run(client, stopping.signal));
    const directMoves = new TlsMoves({
      identity: await moveIdentity(dataDirectory),
      address: config.moveAddress === 'off' ? undefined : (config.moveAddress ?? config.address ?? firstAddress()),
      ports: config.movePorts,
      ...{ clock, prng, log },
    });
    const watchdog =
      config.watchdog === undefined ? undefined : await openWatchdog(config.watchdog, { dataDirectory, clock, log });
    const measured = async () => ({
      ...(watchdog ? { watchdogMs: watchdog.timeoutMs } : {}),
      ...(await measure({
        dataDirectory,
        processArchitecture: system.architecture(),
        randomSecret,
        ...(config.capacity ? { capacity: config.capacity } : {}),
        ...(config.reserved ? { reserved: config.reserved } : {}),
        ...(config.address === undefined ? {} : { address: config.address }),
        ...(config.machineId === undefined ? {} : { machineId: config.machineId }),
        devices: config.devices,
        pciGpus: config.pciGpus,
        numaCells: config.numaCells,
        traits: config.traits,
      })),
    });
    const preloader = createPreloader({
      listImages: (signal) => client.json(`/v1/hosts/${hostName}/images`, { signal }),
      cache: pretended === undefined ? images : pretendedImages(),
      hostName,
      architecture: (await measured()).architecture,
      drivers: config.drivers,
      clock,
      log,
    });
    const carried = createCarried(system.collectYoung);
    const fetchRepository = await openRepositories({
      config,
      directory: join(dataDirectory, 'repositories'),
      userId: system.userId(),
      users: fetchUsersOf(config.guestUsers, system.userId()),
      kill: system.signal,
      ...{ clock, log },
    });
    const sessions = createExecSessions({ clock, log, randomSecret });
    stopping.signal.addEventListener('abort', () => sessions.close(), { once: true });
    agent = createAgent({
      client,
      hostName,
      labels: config.labels,
      agentVersion: version,
      identity: () => Promise.resolve(claimed.agentId),
      drivers,
      ledgerFile: ledgerFileAt(join(dataDirectory, 'ledger.json')),
      volumeFiles,
      incomingFiles,
      directMoves,
      runs: {
        files: createHostRunFiles({ directory: join(dataDirectory, 'runs') }),
        randomSecret,
        fetchRepository,
      },
      measure: measured,
      bootMs: system.bootMs,
      ...(watchdog ? { watchdog: watchdog.device } : {}),
      listImages: () => preloader.images(),
      clock,
      prng,
      log,
      onSession(session, signal) {
        const nameOf: NameOf = (id) => agent?.nameOf(id);
        const routes = { drivers, sessions, clock, log, carried, nameOf, outgoing: agent?.outgoing };
        background.push(
          holdLinks(
            {
              ...{ servers, hostName, epoch: session.epoch, routes, clock, prng, log },
              token: access.token,
              trust: access.trust,
            },
            signal,
          ),
        );
      },
    });
    const running = agent;
    const { failed } = running;
    let refused = false;
    void failed.then(({ cause }) => (refused = cause instanceof ApiError));
    await running.start();
    background.push(preloader.run(stopping.signal));
    return {
      hostName,
      failed,
      async describeGuest(instanceId) {
        const said = await Promise.all(drivers.map(async (driver) => driver.describe?.(instanceId)));
        return said.find((text) => text !== undefined);
      },
      async close() {
        stopping.abort();
        await running.stop();
        await watchdog?.device.close();
        await Promise.all(background);
        access.close();
        if (refused) await leaveHost([guards.hostGuard, guards.networkGuard, guards.containerGuard, network], log);
        await claimed.release();
      },
    };
  } catch (error) {
    stopping.abort();
    await agent?.stop();
    await claimed.release();
    throw error;
  }
}

/** Of an agent that was refused for good: nobody may come back to take it away. */
async function leaveHost(parts: readonly (Pick<HostNetwork, 'leave'> | undefined)[], log: Logger): Promise<void> {
  for (const part of parts) {
    await part
      ?.leave?.()
      .catch((error: unknown) =>
        log.warn('cannot remove what the agent made for guests on this host', { error: describeError(error) }),
      );
  }
}

/** An answer that takes longer is not worth waiting for where another server may have one; far above what a busy server takes. */
const answerMsMax = 8_000;

/** Those of the configuration, and those that were learned before the last restart: the first may be away now. */
function serversOf(
  { serverUrl, dataDirectory, insecureHttp }: AgentConfig,
  { clock, prng, log }: { readonly clock: Clock; readonly prng: Prng; readonly log: Logger },
): Servers {
  const urls = serverUrls(serverUrl);
  const file = knownServersAt(join(dataDirectory, 'servers.json'), { urls, log });
  const mayUse = (url: string): boolean => insecureHttp || !crossesInClear(url);
  const servers = new Servers({ urls, known: file.read(), spread: { clock, prng }, answerMsMax, mayUse });
  let { current } = servers;
  servers.onChange(() => {
    file.write(servers.known);
    if (servers.current !== current) log.info('another server is used', { before: current, now: servers.current });
    ({ current } = servers);
  });
  return servers;
}

/** What was uploaded is asked for where this agent's own server is, whatever addresses images may come from. */
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

/** Every folder that a driver has or had guests in: one that is no longer configured may have left some. Volumes lie upon no image. */
async function guestRootsIn(dataDirectory: string): Promise<string[]> {
  const entries = await readdir(dataDirectory, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory() && !otherFolders.includes(entry.name))
    .map(({ name }) => join(dataDirectory, name));
}

const otherFolders = ['images', 'volumes', 'runs', 'repositories'];

/** Absent: guests have networks of their hypervisor's. */
function hostNetwork(config: AgentConfig, log: Logger): HostNetwork | undefined {
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

function checkNetwork({ network, natSubnet, natDenied }: AgentConfig): void {
  if (network === 'nat' && parseNatSubnet(natSubnet) === undefined) {
    const wanted = 'an IPv4 subnet from /16 to /29, such as 10.77.0.0/16';
    throw new ApiError('InvalidRequest', `natSubnet: "${natSubnet}" is not ${wanted}`, { field: 'natSubnet' });
  }
  for (const [i, denied] of natDenied.entries()) {
    if (parseSubnet(denied.includes('/') ? denied : `${denied}/32`) !== undefined) continue;
    const message = `natDenied: "${denied}" is neither an IPv4 address nor a subnet, such as 10.0.0.0/8`;
    throw new ApiError('InvalidRequest', message, { field: `natDenied[${i}]` });
  }
}

function checkConfig(
  { drivers, portRange, token, tokenFile, devices, numaCells, capacity, zones }: AgentConfig,
  registry: typeof driverRegistry,
): void {
  for (const name of drivers) {
    if (Object.hasOwn(registry, name)) continue;
    const known = Object.keys(registry);
    const meant = nearest(name, known);
    const hint = meant === undefined ? `known: ${known.join(', ')}` : `did you mean "${meant}"?`;
    throw new ApiError('InvalidRequest', `drivers: there is no driver "${name}"; ${hint}`, { field: 'drivers' });
  }
  if (drivers.includes('zones') && zones === undefined) {
    const example = '{dataset: rpool/berth, globalNic: igb0}';
    throw new ApiError('InvalidRequest', `zones: the driver zones must know where guests go: ${example}`, {
      field: 'zones',
    });
  }
  if (portRange.first > portRange.last) {
    const range = `${portRange.first} to ${portRange.last}`;
    throw new ApiError('InvalidRequest', `portRange: ${range} holds no port`, { field: 'portRange' });
  }
  for (const [i, { name }] of devices.entries()) {
    if (devices.findIndex((other) => other.name === name) < i)
      throw new ApiError('InvalidRequest', `devices: "${name}" is given twice`, { field: `devices[${i}].name` });
  }
  for (const stated of ['VCPU', 'MEMORY_MB']) {
    if (!numaCells || capacity?.[stated] === undefined) continue;
    throw new ApiError('InvalidRequest', `capacity: with numaCells ${stated} is what the cells have; leave one away`, {
      field: `capacity.${stated}`,
    });
  }
  if (token !== undefined && tokenFile !== undefined) {
    throw new ApiError('InvalidRequest', 'token and tokenFile are both set; leave one', { field: 'token' });
  }
}

async function tokenOf({ token, tokenFile, hostName }: AgentConfig, log: Logger): Promise<string | undefined> {
  if (tokenFile === undefined) return token;
  const advice = await adviceOnSecretFile(tokenFile);
  if (advice !== undefined) log.warn(advice, { path: tokenFile });
  try {
    return (await readFile(tokenFile, 'utf8')).trim();
  } catch (cause) {
    throw new ApiError(
      'InvalidRequest',
      `tokenFile: cannot read ${tokenFile}; "berth host token ${hostName}" prints what belongs in it`,
      { field: 'tokenFile', cause },
    );
  }
}

async function trustAuthority({ ca }: AgentConfig): Promise<void> {
  if (ca === undefined) return;
  try {
    await trustCertificates(await certificatesAt(ca));
  } catch (cause) {
    const message = `ca: cannot trust the authorities in ${ca}: ${describeError(cause)}`;
    throw new ApiError('InvalidRequest', message, { field: 'ca', cause });
  }
}

/** Read once to see that it can be. */
async function vendorDataOf({ vendorDataFile }: AgentConfig): Promise<(() => Promise<string>) | undefined> {
  if (vendorDataFile === undefined) return undefined;
  const read = vendorDataIn(vendorDataFile);
  try {
    await read();
  } catch (cause) {
    throw new ApiError('InvalidRequest', `vendorDataFile: ${describeError(cause)}`, { field: 'vendorDataFile', cause });
  }
  return read;
}

async function openDrivers(
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
    if (open === undefined) continue; // was refused above
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
