// A whole control plane over the memory store and real HTTP on loopback, for tests of the API.

import type { Clock } from '../base/clock.ts';
import { silentLogger } from '../base/log.ts';
import { randomSecret, systemClock, systemFetch, systemPrng } from '../base/system.ts';
import type { Registration } from '../api/agent-protocol.ts';
import { createClient, type FetchLike } from '../api/client/client.ts';
import type { Principal } from '../core/access/principal.ts';
import { keys } from '../core/state/keys.ts';
import type { Snapshot } from '../core/state/snapshot.ts';
import { defaultPolicy, type Policy } from '../core/state/context.ts';
import { testAgentId } from '../core/testing.ts';
import { createMemoryStore } from '../store/memory/memory-store.ts';
import type { Store } from '../store/store.ts';
import type { AuditSettings } from './audit/audit.ts';
import { AgentLinks } from './http/agent-link/agent-link.ts';
import type { LocalCaller } from './http/identity/local-caller.ts';
import { digestOf } from './http/identity/authenticate.ts';
import { createAuthentication } from './http/identity/authentication.ts';
import { minting } from './http/identity/mint-token.ts';
import { guestAccess } from './http/guest-access.ts';
import { connectionLimits, type ConnectionLimits, Connections } from './http/connections/connections.ts';
import { type HttpParts, serveHttp } from './http/serve.ts';
import type { ForgeParts } from './intake/forges/forges.ts';
import type { LoginParts } from './oidc/login-routes.ts';
import type { ImageContent } from './images/image-content.ts';
import { Activity } from './metrics/activity.ts';
import { MemoryRunStorage } from './runs/memory-run-storage.ts';
import { defaultRunLimits, RunFiles } from './runs/run-files.ts';
import { parse } from '../api/parse.ts';
import { LimitsConfig } from './limits/limits-config.ts';
import { RequestLimits } from './limits/request-limits.ts';
import { Query } from './http/route.ts';
import { PlacementApp } from './placement/app.ts';
import { type Server, startControlPlane } from './server.ts';
import type { SpareMeans } from './spares/provisioners/index.ts';

/** A store for several control planes, or to make fail. */
export function testStore(): Store {
  return createMemoryStore();
}

const tokenSecret = 'x'.repeat(43);

/** It takes tokens that were created, and `operator`, `host:<name>` for a host, and `token:<name>` for each `token` that is stored. */
export async function startTestServer(
  options: {
    store?: Store;
    policy?: Partial<Policy>;
    clock?: Clock;
    imageContent?: ImageContent;
    runFiles?: RunFiles;
    limits?: ConnectionLimits;
    requestLimits?: RequestLimits;
    slowMsMax?: number;
    localCaller?: LocalCaller;
    forges?: ForgeParts;
    audit?: AuditSettings;
    login?: LoginParts;
    spares?: SpareMeans;
    web?: HttpParts['web'];
    sourceMetricNames?: boolean;
    guestMetrics?: boolean;
    tracing?: string;
    placementNoAuth?: boolean;
  } = {},
) {
  const store = options.store ?? createMemoryStore();
  const clock = options.clock ?? systemClock;
  const links = new AgentLinks({ clock, log: silentLogger });
  const limits = options.limits ?? connectionLimits(undefined);
  const connections = new Connections({ limits, clock, log: silentLogger });
  const activity = new Activity();
  const plane = await startControlPlane({
    store,
    clock,
    idleMs: () => clock.monotonicMs(),
    prng: systemPrng(),
    log: silentLogger,
    policy: { ...defaultPolicy, cpuAllocationRatio: 1, ...options.policy },
    links,
    connections,
    ...(options.imageContent === undefined ? {} : { imageContent: options.imageContent }),
    runFiles: options.runFiles ?? new RunFiles({ storage: new MemoryRunStorage(), limits: defaultRunLimits, clock }),
    ...(options.audit === undefined ? {} : { audit: options.audit }),
    ...(options.forges === undefined ? {} : { forges: options.forges }),
    ...(options.login === undefined ? {} : { login: options.login }),
    ...(options.spares === undefined ? {} : { spares: options.spares }),
    mint: minting(randomSecret),
    activity,
    sourceMetricNames: options.sourceMetricNames ?? false,
    guestMetrics: options.guestMetrics ?? false,
    ...(options.tracing === undefined ? {} : { tracing: options.tracing, fetch: systemFetch }),
    version: 'test',
    name: 'server', // one that is started while another runs takes over at once
    leaseMs: 600_000, // and nothing is written that no test asked for
    secrets: { tokenSecret, operatorDigest: digestOf('operator') },
  });
  const hostSecret = Buffer.from(tokenSecret, 'base64url');
  const { decider } = plane;
  const authentication = createAuthentication({ decider, store, hostSecret, log: silentLogger });
  const { authenticator, live } = authentication;
  const access = guestAccess({ decider, links, secret: hostSecret, live, audit: plane.audit?.parts });
  const http = await serveHttp(
    {
      routes: [...plane.routes, ...access.routes],
      placement: {
        app: new PlacementApp({ decider, log: silentLogger, audit: plane.audit?.parts }),
        at: '/placement',
        noAuth: options.placementNoAuth ?? false,
      },
      access,
      snapshot: plane.decider.cache,
      identify: (shown) => testPrincipal(shown.authorizations[0], decider.cache) ?? authenticator.identify(shown),
      live,
      epochOf: (host) => plane.decider.cache.committed('host', keys.host(host))?.value.status.epoch,
      acceptLink: (host, socket, epoch) => links.accept(host, socket, epoch),
      connections,
      limits: options.requestLimits ?? new RequestLimits(parse(LimitsConfig, {}), { clock }),
      ...(options.slowMsMax === undefined ? {} : { slowMsMax: options.slowMsMax }),
      ...(options.localCaller === undefined ? {} : { localCaller: options.localCaller }),
      ...(options.web === undefined ? {} : { web: options.web }),
      answered: (answer) => activity.answered(answer),
      monotonicMs: () => clock.monotonicMs(),
      ...(plane.audit ? { onRefused: plane.audit.refusals.told } : {}),
      log: silentLogger,
    },
    { host: '127.0.0.1', port: 0 },
  );
  const fetch: FetchLike = (url, init) => systemFetch(url, init);
  return {
    url: http.url,
    store,
    plane,
    client: createClient({ fetch, url: http.url, token: 'operator' }),
    agentClient: (host: string) => createClient({ fetch, url: http.url, token: `host:${host}` }).agent(host),
    /** As if the process were killed: its connections break, nothing is finished, and the store is left as it is. */
    async drop() {
      links.close();
      await http.close();
      authentication.stop();
      void plane.stop();
    },
    async close() {
      links.close();
      await http.close();
      authentication.stop();
      await plane.stop();
      await store.close();
    },
  };
}

/** Who the bearer of a test token is. */
export function testPrincipal(authorization: string | undefined, snapshot: Snapshot): Principal | undefined {
  const text = /^Bearer (.*)$/.exec(authorization ?? '')?.[1];
  if (text === 'operator') return { kind: 'admin' };
  const [kind, name = ''] = text?.split(':') ?? [];
  if (kind === 'host') return { kind: 'host', host: name };
  const token = kind === 'token' ? snapshot.get('token', keys.token(name))?.value : undefined;
  return token && { kind: 'token', name, uid: token.metadata.id, tokenId: token.status.tokenId };
}

export function testRegistration(changes: Partial<Registration> = {}): Registration {
  return {
    session: 'session-1',
    machineId: 'machine-1',
    agentId: testAgentId,
    bootId: 'boot-1',
    architecture: 'amd64',
    capacity: { VCPU: 4, MEMORY_MB: 8192, DISK_GB: 100 },
    reserved: {},
    labels: {},
    drivers: [{ name: 'fake', available: true, runs: true }],
    images: [],
    agentVersion: 'test',
    ...changes,
  };
}

/** What a control plane answers who asks whether it is ready, without HTTP between. Rejects with what it refuses. */
export async function readyz({ routes }: Pick<Server, 'routes'>): Promise<unknown> {
  const route = routes.find(({ path }) => path === '/readyz');
  if (route === undefined) throw new Error('there is no /readyz');
  return route.handle({ headers: {}, query: new Query([]) } as never);
}
