// The agent as a process: real clock, real files, real sockets. It puts the parts together and decides nothing.

import { join } from 'node:path';
import { createClient } from '../api/client/client.ts';
import { ApiError } from '../api/errors.ts';
import { crossesInClear } from '../api/client/plain-http.ts';
import { Servers, serverUrls } from '../api/client/servers.ts';
import type { Clock } from '../base/clock.ts';
import type { Prng } from '../base/prng.ts';
import { describeError, type Logger } from '../base/log.ts';
import { createCarried } from '../base/carried.ts';
import { randomSecret, system, systemClock, systemFetch, systemPrng } from '../base/system.ts';
import { version } from '../base/version.ts';
import { type Agent, createAgent } from './agent.ts';
import { MaintenanceCommand } from './host/maintenance-command.ts';
import type { NameOf } from './host/named.ts';
import { fetchUsersOf, guestUsersOf, makeFolder, needsPassage } from './agent-folders.ts';
import { openServerAccess } from './enrolment/server-access.ts';
import { claimDataDirectory } from './claim-data-directory.ts';
import type { AgentConfig } from './config.ts';
import { drivers as driverRegistry } from './drivers/registry.ts';
import { hostCredentials } from './images/credentials/image-credentials.ts';
import { guestGuards } from './network/guest-guards.ts';
import type { HostNetwork } from './network/host-network.ts';
import { placedGuests } from './drivers/guest-life/placed-guests.ts';
import { ledgerFileAt } from './ledger/ledger-file.ts';
import { knownServersAt } from './link/known-servers.ts';
import { holdLinks } from './link/links.ts';
import { pretendedImages } from './images/pretended-images.ts';
import { createPreloader } from './preload.ts';
import { createHostRunFiles } from './runner/files/host-run-files.ts';
import { openRepositories } from './runner/repository/open-repositories.ts';
import { createExecSessions } from './access/exec-sessions.ts';
import type { VolumeDisk } from './volumes/files/memory-volume-files.ts';
import { openWatchdog } from './watchdog/open-watchdog.ts';
import { checkedConfig } from './checked-config.ts';
import { openDrivers } from './open-drivers.ts';
import { directMovesOf, filesOf, guestRootsIn, hostNetwork, imageCacheOf, measured } from './agent-parts.ts';

export interface RunningAgent {
  readonly hostName: string;
  /** Resolves when the agent cannot go on; close it then. */
  readonly failed: Promise<Error>;
  /** The state of a guest as its hypervisor describes it, for people; undefined: it describes nothing, or no guest runs. */
  describeGuest(instanceId: string): Promise<string | undefined>;
  /** Guests run on. */
  close(): Promise<void>;
}

/** Resolves when the agent works, even if the control plane does not answer yet. When it cannot start, throws and leaves nothing open. */
export async function startAgent(
  config: AgentConfig,
  { log, drivers: registry = driverRegistry }: { readonly log: Logger; readonly drivers?: typeof driverRegistry },
): Promise<RunningAgent> {
  const { token, vendorData } = await checkedConfig(config, { registry, log });
  const imageCredentials = hostCredentials(config.imageCredentials, systemClock);
  const { hostName, dataDirectory } = config;
  const access = await openServerAccess(config, {
    ...{ fetch: (url, init) => systemFetch(url, init), token, clock: systemClock, prng: systemPrng(), log },
  });
  const users = guestUsersOf(config.guestUsers, system.userId());
  const passable = needsPassage(config.drivers, { ownUsers: users !== undefined });
  for (const folder of [dataDirectory, join(dataDirectory, 'images'), join(dataDirectory, 'volumes')])
    await makeFolder(folder, { passable });
  const clock = systemClock;
  const prng = systemPrng();
  const claimed = await claimDataDirectory(dataDirectory, { clock, prng });
  const stopping = new AbortController();
  const background: Promise<void>[] = [];
  let agent: Agent | undefined;
  try {
    const servers = serversOf(config, { clock, prng, log });
    const images = imageCacheOf(config, {
      ...{ access, credentials: imageCredentials, log },
      serverUrl: () => servers.current,
    });
    const network = hostNetwork(config, log);
    // Of all drivers before any is at work: what one guest has must not be given to the guest of another driver.
    for (const guest of await placedGuests(await guestRootsIn(dataDirectory))) network?.adopt(guest);
    const pretended: VolumeDisk | undefined = config.drivers.every((name) => name === 'fake') ? new Map() : undefined;
    const guards = guestGuards(config, { agentId: claimed.agentId, userId: system.userId(), users, clock, log });
    const drivers = await openDrivers(config, {
      ...{ registry, images, imageCredentials, log, network, pretended, vendorData, users, guards, passable },
    });
    const { volumeFiles, incomingFiles } = filesOf(config, { pretended, passable });
    const client = createClient({
      fetch: access.fetch,
      url: servers,
      userAgent: `berth-agent/${version}`,
      ...(access.token === undefined ? {} : { token: access.token }),
    });
    background.push(access.run(client, stopping.signal));
    const directMoves = await directMovesOf(config, log);
    const watchdog =
      config.watchdog === undefined ? undefined : await openWatchdog(config.watchdog, { dataDirectory, clock, log });
    const measureHost = async () => ({
      ...(watchdog ? { watchdogMs: watchdog.timeoutMs } : {}),
      ...(await measured(config)),
    });
    const preloader = createPreloader({
      listImages: (signal) => client.json(`/v1/hosts/${hostName}/images`, { signal }),
      cache: pretended === undefined ? images : pretendedImages(),
      hostName,
      architecture: (await measureHost()).architecture,
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
      ...(config.maintenanceCommand === undefined
        ? {}
        : {
            maintenance: new MaintenanceCommand({
              command: config.maintenanceCommand,
              file: join(dataDirectory, 'maintenance.json'),
              ...{ clock, log },
            }),
          }),
      measure: measureHost,
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

/** After a permanent refusal: no agent may come back to clean up. */
async function leaveHost(parts: readonly (Pick<HostNetwork, 'leave'> | undefined)[], log: Logger): Promise<void> {
  for (const part of parts) {
    await part
      ?.leave?.()
      .catch((error: unknown) =>
        log.warn('cannot remove what the agent made for guests on this host', { error: describeError(error) }),
      );
  }
}

/** After this time another server is asked. Far above what a busy server needs. */
const answerMsMax = 8_000;

/** The configured servers, and those that were learned before the last restart: the configured ones may be unreachable now. */
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
