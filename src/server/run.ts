// The control plane as a process: real clock, real store, real sockets.

import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gibibyte, mebibyte } from '../base/bytes.ts';
import { createCarried } from '../base/carried.ts';
import {
  environment,
  randomSecret,
  system,
  systemClock,
  systemFetch,
  systemMachineId,
  systemPrng,
} from '../base/system.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { version } from '../base/version.ts';
import { ApiError } from '../api/errors.ts';
import { announceControlPlane } from '../core/operations/servers/control-plane.ts';
import { comingHostGeneration } from '../core/operations/access/host-generation.ts';
import type { Policy } from '../core/state/context.ts';
import { keys, prefixOf } from '../core/state/keys.ts';
import { placeOf } from '../store/open.ts';
import { Announcement } from './announcement.ts';
import { auditOf } from './audit/audit-settings.ts';
import {
  advertisedUrl,
  isLocal,
  listenAddress,
  placementAddress,
  policyOf,
  readTls,
  runDirectory,
  speaksTls,
} from './checked-config.ts';
import type { ServerConfig } from './config.ts';
import { type Decider, decideAndCommit } from './decide.ts';
import { AgentLinks } from './http/agent-link/agent-link.ts';
import { connectionLimits, Connections } from './http/connections/connections.ts';
import { guestAccess } from './http/guest-access.ts';
import { checkListen, type HttpParts, type HttpServer, serveHttp, type TlsIdentity } from './http/serve.ts';
import { type Authentication, createAuthentication } from './http/identity/authentication.ts';
import { localCallerOf } from './http/identity/local-caller.ts';
import { UntilOpen } from './http/identity/until-open.ts';
import { minting } from './http/identity/mint-token.ts';
import { hostTokenOf } from './http/tokens.ts';
import { createImageContent, type ImageContent, type InspectImage } from './images/image-content.ts';
import { readForges } from './intake/forges/forges.ts';
import { loadImageMap, readImageMap } from './images/image-map-load.ts';
import type { LimitsConfig } from './limits/limits-config.ts';
import { RequestLimits } from './limits/request-limits.ts';
import { DirectoryRunStorage } from './runs/directory-run-storage.ts';
import { RunFiles } from './runs/run-files.ts';
import type { Amqp } from './intake/amqp/amqp.ts';
import type { TaskQueue } from './intake/amqp/task-queue.ts';
import { amqpSettingsOf, taskSettingsOf } from './intake/amqp/amqp-settings.ts';
import { startAmqp, startTaskQueue } from './intake/start-amqp.ts';
import { Activity } from './metrics/activity.ts';
import { mcpSettingsOf } from './mcp/start-mcp.ts';
import { readEventBus } from './outbox/bus/start-event-bus.ts';
import { createPost } from './outbox/webhooks/post.ts';
import { ReceiverGuard } from './outbox/webhooks/receiver-guard.ts';
import { readInventorySettings } from './inventory/inventory-settings.ts';
import type { AccessTokens } from './oidc/access-tokens.ts';
import { accessTokensOf, readLogin } from './oidc/start-login.ts';
import { Outside } from './outside.ts';
import { sealingOf } from './sealing/server-sealing.ts';
import { type Server, startControlPlane } from './server.ts';
import { readFenceHook } from './fencing/fence-config.ts';
import { PlacementApp } from './placement/app.ts';
import { servePlacement } from './placement/listener.ts';
import { type PlacementSettings, placementSettings } from './placement/settings.ts';
import { readSpareMeans } from './spares/provisioners/index.ts';
import { secretsFor, takeSecrets } from './secret-files.ts';
import { clusterIn } from './storage/cluster-record.ts';
import { refuseMissingStore } from './storage/missing-store.ts';
import { closeWithStore, openWithPatience } from './storage/patience-with-store.ts';
import { stoppableStart, throwIfStopped } from './stoppable-start.ts';
import type { JoinParts } from './tls/join-routes.ts';
import type { ServerTls } from './tls/server-tls.ts';
import { WebFiles } from './web/web-files.ts';
import { warnOfOpenFiles } from './warn-of-open-files.ts';

export interface RunningServer {
  readonly url: string;
  /** Of the listener that serves the Placement API alone. */
  readonly placementUrl?: string;
  /** Empty: this server has no copy of the admin token. */
  readonly operatorToken: string;
  /** Of the fleet's own authority, when this server shows a certificate of it. */
  readonly caFingerprint?: string;
  hostToken(name: string): string;
  close(): Promise<void>;
}

interface StartOptions {
  readonly log: Logger;
  readonly clock?: Clock;
  /** The gate for uploaded images; absent: images cannot be uploaded. */
  readonly inspectImage?: InspectImage;
  /** Stops the start: it throws `StartStopped` within about a second, even if the store does not answer. */
  readonly signal?: AbortSignal;
}

/** Resolves when it listens. Throws, with nothing left open, when configuration or store do not allow it. */
export async function startServer(
  config: ServerConfig,
  { clock = systemClock, signal = new AbortController().signal, ...options }: StartOptions,
): Promise<RunningServer> {
  return stoppableStart(() => start(config, { ...options, clock, signal }), { signal, clock });
}

async function start(
  config: ServerConfig,
  { log, clock, inspectImage, signal }: StartOptions & { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<RunningServer> {
  const listen = listenAddress(config);
  await readTls(config);
  const secure = speaksTls(config);
  warnOfPlainHttp(config, { secure, log });
  await warnOfOpenFiles(config, log);
  const forges = await readForges(config, { environment: environment(), fetch: systemFetch });
  const login = await readLogin(config, { fetch: systemFetch, clock, log, randomSecret });
  const eventBus = await readEventBus(config);
  const inventorySettings = await readInventorySettings(config);
  const policy = policyOf(config);
  await checkApplied(config, policy);
  const placementListen = placementAddress(config);
  if (placementListen !== undefined) await checkListen(placementListen, 'placementListen');
  await checkListen(listen); // before anything is written to a store that other servers may use too
  await mkdir(config.dataDirectory, { recursive: true, mode: 0o700 });
  const storeUrl = config.store ?? `sqlite:${join(config.dataDirectory, 'berth.db')}`;
  const spares = await readSpareMeans(config, { clock, alone: /^(sqlite|memory):/.test(storeUrl) });
  const fenceHook = await readFenceHook(config.fencing, clock);
  const place = await placeOf(storeUrl);
  refuseMissingStore(storeUrl, config);
  const store = await openWithPatience(storeUrl, { waitMs: config.storeWaitMs, log, clock, signal });
  const links = new AgentLinks({ clock, log });
  const connections = new Connections({ limits: connectionLimits(system.openFilesMax()), clock, log });
  let plane: Server | undefined;
  let announcement: Announcement | undefined;
  let amqp: Amqp | undefined;
  let taskQueue: TaskQueue | undefined;
  let tls: ServerTls | undefined;
  let listening: HttpServer | undefined;
  let placement: HttpServer | undefined;
  const outside = new Outside();
  const activity = new Activity();
  const turn = new UntilOpen();
  try {
    throwIfStopped(signal);
    const name = await nameOf(config);
    const sealing = await sealingOf(config, { store, own: storeUrl.startsWith('sqlite:'), clock, log });
    const audit = auditOf(config, { clock, log, stdout: system.stdout, afterCallbacks: system.afterPromises });
    plane = await startControlPlane({
      store: sealing?.store ?? store,
      ...(sealing === undefined ? {} : { sealing }),
      ...(forges === undefined ? {} : { forges }),
      ...(login === undefined ? {} : { login }),
      ...(audit === undefined ? {} : { audit }),
      ...{ policy, links, connections, eventBus, inventorySettings, spares, fenceHook, activity, outside },
      ...(await configuredParts(config, { name, secure, inspectImage, clock, log })),
      marksLater: true,
      secrets: await secretsFor(config.dataDirectory, (await clusterIn(sealing?.store ?? store))?.cluster),
    });
    throwIfStopped(signal);
    const { operatorToken, hostSecret } = await takeSecrets(config.dataDirectory, plane.cluster, log);
    const { decider, stop: stopPlane } = plane;
    const opened = plane;
    const marksStore = !plane.opened && !(secure && needsAuthority(decider));
    const open = async (): Promise<void> => {
      await opened.open();
      await applyConfiguration(config, decider, log);
      turn.come();
      amqp = await startAmqp(config, { plane: opened, outside, log });
      taskQueue = await startTaskQueue(config, { plane: opened, outside, log });
    };
    if (!marksStore) await open();
    const announced = new Announcement({ decider, log, name, url: advertisedUrl(config, store) });
    announcement = announced;
    tls = secure ? await openTls(config, decider, log) : undefined;
    const certificates = tls;
    const authentication = createAuthentication({ decider, store, hostSecret, log });
    const audience = mcpSettingsOf(config)?.protectedResource?.url;
    const accessTokens = await accessTokensOf(audience, {
      ...{ login, decider, audit: plane.audit?.parts, salt: randomSecret(32) },
    });
    const parts = httpParts(plane, {
      announced,
      links,
      connections,
      limits: config.limits,
      hostSecret,
      authentication,
      activity,
      accessTokens,
      turn,
      scheduleWithoutToken: config.scheduleWithoutToken,
      placement: placementSettings(config, log),
      certificates,
      log,
    });
    const http = await serveHttp(parts, listen);
    listening = http;
    const placed = await servePlacement(parts, placementListen);
    placement = placed;
    const setTls = (next: TlsIdentity): void => {
      http.setTls(next);
      placed?.setTls(next);
    };
    tls?.start(setTls);
    const forgetRemoved = closeRemoved(decider, links);
    // Once the store is marked, servers of the version before write nothing: there is no time without a server that writes.
    if (marksStore) await open();
    const [intake, tasks] = [amqp, taskQueue];
    const forgetHangup = certificates && system.onHangup(() => certificates.check(setTls));
    announced.start();
    const caFingerprint = certificates?.caFingerprint;
    log.info('server listens', { url: http.url, store: place, caFingerprint, placement: placed?.url });
    return {
      url: http.url,
      ...(placed === undefined ? {} : { placementUrl: placed.url }),
      ...(caFingerprint === undefined ? {} : { caFingerprint }),
      operatorToken,
      hostToken: (name) => hostTokenOf(hostSecret, name, comingHostGeneration(decider.cache, name)),
      close: () =>
        closeWithStore({ store, clock }, async () => {
          await Promise.all([intake?.stopIntake(), tasks?.stopIntake()]);
          links.close();
          forgetRemoved();
          forgetHangup?.();
          await certificates?.stop();
          await Promise.all([placed?.close(), http.close()]);
          authentication.stop();
          await announced.stop();
          await Promise.all([intake?.stop(), tasks?.stop()]);
          await stopPlane();
          await store.close();
        }),
    };
  } catch (error) {
    links.close();
    turn.fail();
    await Promise.all([placement?.close(), listening?.close()]);
    await tls?.stop();
    await announcement?.stop();
    await Promise.all([amqp?.stop(), taskQueue?.stop()]);
    await plane?.stop();
    await store.close();
    throw error;
  }
}

/** The parts of the control plane that follow from the configuration and the process alone. */
async function configuredParts(
  config: ServerConfig,
  parts: {
    readonly name: string;
    readonly secure: boolean;
    readonly inspectImage: InspectImage | undefined;
    readonly clock: Clock;
    readonly log: Logger;
  },
) {
  const { name, secure, inspectImage, clock, log } = parts;
  const { scheduleTtlMs, scheduleWhenFull, sourceMetricNames, guestMetrics, tracing } = config;
  return {
    ...{ name, version, clock, log, scheduleTtlMs, scheduleWhenFull, sourceMetricNames, guestMetrics, tracing },
    idleMs: system.idleMs,
    prng: systemPrng(),
    fetch: systemFetch,
    ...imageContentOf(config, { inspectImage, owner: name, clock, log }),
    runFiles: await runFilesOf(config, clock),
    mcp: mcpSettingsOf(config),
    post: createPost(new ReceiverGuard(config.webhookAllow), clock),
    ...(secure ? { joining: joinPartsOf(config) } : {}),
    mint: minting(randomSecret),
    leaseMs: config.leaderLeaseMs,
  };
}

/**
 * Throws `InvalidRequest` for faults of what is applied after the store is open. A server must not mark the store, after which servers of the
 * previous version write nothing, and then fail to start.
 */
async function checkApplied(config: ServerConfig, { maxConcurrency }: Policy): Promise<void> {
  if (config.imageMap !== undefined) await readImageMap(config.imageMap);
  amqpSettingsOf(config, maxConcurrency);
  taskSettingsOf(config);
}

/** Without an authority, a server that uses TLS must write to the store before it can listen. */
function needsAuthority({ cache }: Decider): boolean {
  return cache.committed('authority', keys.authority) === undefined;
}

/** Loaded only by servers that speak TLS. */
async function openTls(config: ServerConfig, decider: Decider, log: Logger): Promise<ServerTls> {
  const { ServerTls: Tls } = await import('./tls/server-tls.ts');
  return Tls.open({ config, decider, randomSecret, log });
}

/** The links of hosts that are removed are closed at once. */
function closeRemoved({ cache }: Decider, links: AgentLinks): () => void {
  const prefix = prefixOf('host');
  return cache.onCommitted((key) => {
    if (key.startsWith(prefix) && cache.committed('host', key) === undefined) links.drop(key.slice(prefix.length));
  });
}

function joinPartsOf({ tlsCertificate }: ServerConfig): JoinParts {
  return { randomSecret, ownCertificate: tlsCertificate === undefined };
}

function warnOfPlainHttp(
  config: ServerConfig,
  { secure, log }: { readonly secure: boolean; readonly log: Logger },
): void {
  if (config.insecure) log.warn('the setting "insecure" is now called "insecureHttp"');
  if (!secure && !isLocal(config))
    log.warn('this server speaks plain HTTP to other machines: every token can be read on the network', {
      listen: config.listen,
    });
}

/** Stays the same after a restart. */
async function nameOf({ dataDirectory, listen }: ServerConfig): Promise<string> {
  const serverId = await readOrMake(join(dataDirectory, 'server-id'), () => randomSecret(16).toString('hex'));
  return `${serverId}@${listen}`;
}

function imageContentOf(
  { imageDirectory, dataDirectory, imageGiBMax }: ServerConfig,
  parts: {
    readonly inspectImage: InspectImage | undefined;
    readonly owner: string;
    readonly clock: Clock;
    readonly log: Logger;
  },
): { readonly imageContent?: ImageContent } {
  const { inspectImage: inspect, owner, clock, log } = parts;
  if (inspect === undefined) return {};
  const directory = imageDirectory ?? join(dataDirectory, 'images');
  const bytesMax = imageGiBMax * 1024 ** 3;
  return { imageContent: createImageContent({ directory, bytesMax, inspect, owner, clock, log }) };
}

async function runFilesOf(config: ServerConfig, clock: Clock): Promise<RunFiles> {
  const { logMiBMax, artifactsMiBMax, blobGiBMax } = config;
  return new RunFiles({
    storage: new DirectoryRunStorage(await runDirectory(config)),
    limits: {
      logBytesMax: logMiBMax * mebibyte,
      artifactsBytesMax: artifactsMiBMax * mebibyte,
      projectBytesMax: blobGiBMax * gibibyte,
    },
    clock,
  });
}

async function applyConfiguration(config: ServerConfig, decider: Decider, log: Logger): Promise<void> {
  const { imageMap } = config;
  if (imageMap !== undefined) await whereThereIsRoom(() => loadImageMap(imageMap, decider, log), log);
  await whereThereIsRoom(() => announce(config, decider), log);
}

function httpParts(
  { decider, routes, audit }: Server,
  parts: {
    readonly announced: Announcement;
    readonly links: AgentLinks;
    readonly connections: Connections;
    readonly limits: LimitsConfig;
    readonly hostSecret: Uint8Array;
    readonly authentication: Authentication;
    readonly activity: Activity;
    readonly accessTokens: AccessTokens | undefined;
    readonly turn: UntilOpen;
    readonly certificates: ServerTls | undefined;
    readonly scheduleWithoutToken: string | undefined;
    readonly placement: PlacementSettings;
    readonly log: Logger;
  },
): HttpParts {
  const {
    announced,
    links,
    connections,
    limits,
    hostSecret,
    authentication,
    activity,
    certificates,
    scheduleWithoutToken,
    accessTokens,
    turn,
    log,
  } = parts;
  const { authenticator, live } = authentication;
  const identify: HttpParts['identify'] = (shown) => authenticator.identify(shown);
  const access = guestAccess({ decider, links, secret: hostSecret, live, audit: audit?.parts });
  return {
    routes: [...routes, ...access.routes],
    placement: {
      app: new PlacementApp({ decider, log, randomOrder: parts.placement.randomOrder, audit: audit?.parts }),
      at: '/placement',
      noAuth: parts.placement.noAuth,
    },
    access,
    snapshot: decider.cache,
    identify: turn.hold(accessTokens === undefined ? identify : (shown) => accessTokens.identify(shown, identify)),
    ...(scheduleWithoutToken === undefined ? {} : { localCaller: localCallerOf(scheduleWithoutToken) }),
    live,
    epochOf: (host) => decider.cache.committed('host', keys.host(host))?.value.status.epoch,
    acceptLink: (host, socket, epoch) => links.accept(host, socket, epoch),
    servers: () => announced.announced,
    authorities: () => certificates?.authoritiesTold,
    carried: createCarried(system.collectYoung),
    answered: (answer) => activity.answered(answer),
    monotonicMs: () => decider.clock.monotonicMs(),
    web: { files: new WebFiles(), newNonce: () => randomSecret(16).toString('base64') },
    newRequestId: requestIds(randomSecret(9).toString('base64url')),
    ...(audit === undefined ? {} : { onRefused: audit.refusals.told }),
    connections,
    limits: new RequestLimits(limits, { clock: decider.clock }),
    log,
    ...(certificates === undefined ? {} : { tls: certificates.identity }),
  };
}

/** `req_<of this process>-<count>`. */
function requestIds(prefix: string): () => string {
  let count = 0;
  return () => `req_${prefix}-${(count++).toString(36)}`;
}

/** A full store is served all the same: it can be read, and deletions often free space. */
async function whereThereIsRoom(write: () => Promise<unknown>, log: Logger): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'StoreFull') throw error;
    log.error('the store has no space; free some, and restart the server to apply its configuration');
  }
}

/** Records which machine this control plane runs on, so that its host is known as a host of a control plane. */
async function announce({ excludeControlPlaneHosts: excludeHosts }: ServerConfig, decider: Decider): Promise<void> {
  const machineId = await systemMachineId();
  if (machineId !== undefined) {
    await decideAndCommit(decider, (snapshot, ctx) => announceControlPlane(snapshot, { machineId, excludeHosts }, ctx));
  } else if (excludeHosts) {
    throw new ApiError(
      'InvalidRequest',
      'excludeControlPlaneHosts: this machine has no id in /etc/machine-id, so its host cannot be told from others; set controlPlane: true on the host instead ("berth host set HOST --control-plane")',
      { field: 'excludeControlPlaneHosts' },
    );
  }
}

async function readOrMake(path: string, make: () => string): Promise<string> {
  try {
    await writeFile(path, `${make()}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    await chmod(path, 0o600);
  }
  const text = (await readFile(path, 'utf8')).trim();
  if (text === '') throw new Error(`${path} is empty; delete it to have a new one made`);
  return text;
}
