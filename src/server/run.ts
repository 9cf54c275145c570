// The control plane as a process: real clock, real store, real sockets.

import { randomSecret, system, systemClock } from '../base/system.ts';
import type { Clock } from '../base/clock.ts';
import type { Logger } from '../base/log.ts';
import { comingHostGeneration } from '../core/operations/access/host-generation.ts';
import { keys, prefixOf } from '../core/state/keys.ts';
import { Announcement } from './announcement.ts';
import { auditOf } from './audit/audit-settings.ts';
import { advertisedUrl } from './checked-config.ts';
import type { ServerConfig } from './config.ts';
import type { Decider } from './decide.ts';
import { AgentLinks } from './http/agent-link/agent-link.ts';
import { connectionLimits, Connections } from './http/connections/connections.ts';
import { type HttpServer, serveHttp, type TlsIdentity } from './http/serve.ts';
import { createAuthentication } from './http/identity/authentication.ts';
import { UntilOpen } from './http/identity/until-open.ts';
import { hostTokenOf } from './http/tokens.ts';
import type { InspectImage } from './images/image-content.ts';
import { Activity } from './metrics/activity.ts';
import { mcpSettingsOf } from './mcp/start-mcp.ts';
import { accessTokensOf } from './oidc/start-login.ts';
import { Outside } from './outside.ts';
import { sealingOf } from './sealing/server-sealing.ts';
import { type Server, startControlPlane } from './server.ts';
import { servePlacement } from './placement/listener.ts';
import { placementSettings } from './placement/settings.ts';
import { secretsFor, takeSecrets } from './secret-files.ts';
import { clusterIn } from './storage/cluster-record.ts';
import { closeWithStore, openWithPatience } from './storage/patience-with-store.ts';
import { stoppableStart, throwIfStopped } from './start/stoppable-start.ts';
import type { ServerTls } from './tls/server-tls.ts';
import { BrokerIntakes } from './intake/broker-intakes.ts';
import { Closing } from './start/closing.ts';
import { configuredParts, nameOf } from './start/configured-parts.ts';
import { httpParts } from './start/http-parts.ts';
import { applyConfiguration } from './start/apply-configuration.ts';
import { readSettings, type Settings } from './start/settings.ts';
import type { Store } from '../store/store.ts';

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
  const settings = await readSettings(config, { clock, log });
  const store = await openWithPatience(settings.storeUrl, { waitMs: config.storeWaitMs, log, clock, signal });
  const closing = new Closing();
  closing.add(() => store.close());
  const opening: Opening = {
    ...{ config, settings, store, closing, inspectImage, clock, log },
    links: new AgentLinks({ clock, log }),
    connections: new Connections({ limits: connectionLimits(system.openFilesMax()), clock, log }),
    intakes: new BrokerIntakes(),
    outside: new Outside(),
    activity: new Activity(),
    turn: new UntilOpen(),
  };
  const { links, intakes, turn } = opening;
  try {
    throwIfStopped(signal);
    const plane = await openPlane(opening);
    throwIfStopped(signal);
    const running = await serve(opening, plane);
    return {
      ...running,
      close: () =>
        closeWithStore({ store, clock }, async () => {
          await intakes.stopIntake();
          links.close();
          await closing.run();
        }),
    };
  } catch (error) {
    links.close();
    turn.fail();
    await closing.run();
    throw error;
  }
}

/** What the steps of a start share. */
interface Opening {
  readonly config: ServerConfig;
  readonly settings: Settings;
  readonly store: Store;
  readonly closing: Closing;
  readonly inspectImage: InspectImage | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly links: AgentLinks;
  readonly connections: Connections;
  readonly intakes: BrokerIntakes;
  readonly outside: Outside;
  readonly activity: Activity;
  readonly turn: UntilOpen;
}

interface OpenPlane {
  readonly plane: Server;
  readonly name: string;
}

async function openPlane({ config, settings, closing, clock, log, ...opening }: Opening): Promise<OpenPlane> {
  const { secure, storeUrl, forges, login, forFleet } = settings;
  const { inspectImage, links, connections, outside, activity } = opening;
  const name = await nameOf(config);
  const sealing = await sealingOf(config, { store: opening.store, own: storeUrl.startsWith('sqlite:'), clock, log });
  const audit = auditOf(config, { clock, log, stdout: system.stdout, afterCallbacks: system.afterPromises });
  const store = sealing?.store ?? opening.store;
  const plane = await startControlPlane({
    store,
    ...(sealing === undefined ? {} : { sealing }),
    ...(forges === undefined ? {} : { forges }),
    ...(login === undefined ? {} : { login }),
    ...(audit === undefined ? {} : { audit }),
    ...{ ...forFleet, links, connections, activity, outside },
    ...(await configuredParts(config, { name, secure, inspectImage, clock, log })),
    marksLater: true,
    secrets: await secretsFor(config.dataDirectory, (await clusterIn(store))?.cluster),
  });
  closing.add(() => plane.stop());
  return { plane, name };
}

async function serve(opening: Opening, { plane, name }: OpenPlane): Promise<Omit<RunningServer, 'close'>> {
  const { config, settings, store, closing, links, connections, intakes, outside, activity, turn, log } = opening;
  const { secure, login, listen, placementListen, place } = settings;
  const { decider } = plane;
  const { operatorToken, hostSecret } = await takeSecrets(config.dataDirectory, plane.cluster, log);
  const marksStore = !plane.opened && !(secure && needsAuthority(decider));
  const open = async (): Promise<void> => {
    await plane.open();
    await applyConfiguration(config, decider, log);
    turn.come();
    await intakes.start(config, { plane, outside, log });
  };
  closing.add(() => intakes.stop());
  if (!marksStore) await open();
  const announced = new Announcement({ decider, log, name, url: advertisedUrl(config, store) });
  closing.add(() => announced.stop());
  const authentication = createAuthentication({ decider, store, hostSecret, log });
  closing.add(() => authentication.stop());
  const certificates = secure ? await openTls(config, decider, log) : undefined;
  closing.add(() => certificates?.stop());
  const audience = mcpSettingsOf(config)?.protectedResource?.url;
  const accessTokens = await accessTokensOf(audience, {
    ...{ login, decider, audit: plane.audit?.parts, salt: randomSecret(32) },
  });
  const parts = httpParts(plane, {
    ...{ announced, links, connections, hostSecret, authentication, activity, accessTokens, turn, certificates, log },
    limits: config.limits,
    scheduleWithoutToken: config.scheduleWithoutToken,
    placement: placementSettings(config, log),
  });
  const listeners: HttpServer[] = [];
  closing.add(() => Promise.all(listeners.map((each) => each.close())));
  const http = await serveHttp(parts, listen);
  listeners.push(http);
  const placement = await servePlacement(parts, placementListen);
  if (placement) listeners.push(placement);
  const setTls = (next: TlsIdentity): void => {
    for (const each of listeners) each.setTls(next);
  };
  certificates?.start(setTls);
  closing.add(closeRemoved(decider, links));
  // Once the store is marked, servers of the version before write nothing: there is no time without a server that writes.
  if (marksStore) await open();
  if (certificates) closing.add(system.onHangup(() => certificates.check(setTls)));
  announced.start();
  const caFingerprint = certificates?.caFingerprint;
  log.info('server listens', { url: http.url, store: place, caFingerprint, placement: placement?.url });
  return {
    url: http.url,
    ...(placement === undefined ? {} : { placementUrl: placement.url }),
    ...(caFingerprint === undefined ? {} : { caFingerprint }),
    operatorToken,
    hostToken: (host) => hostTokenOf(hostSecret, host, comingHostGeneration(decider.cache, host)),
  };
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
