// For each route, what the matrix asks of it: once about the own project and once about a foreign one, or in whatever ways matter.

import { pluralOf } from '../../../api/resources/plural-of.ts';
import type { Kind } from '../../../api/resources/index.ts';
import type { RouteDefinition } from '../../../api/routes/route.ts';
import { isResource } from '../routes/present.ts';
import { instanceId, loneId, recordAt, type Side, sides } from './test-scene.ts';

export interface Ask {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** By case: `own`, `foreign`, ... */
export type Asks = Readonly<Record<string, Ask>>;

const caseOf = (side: Side): string => (side === 'ours' ? 'own' : 'foreign');

function both(ask: (side: Side) => Ask, suffix = ''): Asks {
  return Object.fromEntries(sides.map((side) => [`${caseOf(side)}${suffix}`, ask(side)]));
}

const fleet = (ask: Ask = {}): Asks => ({ '': ask });

interface Sample {
  /** Of what is there. */
  readonly name: (side: Side) => string;
  /** Of one that may be made. */
  readonly spec?: (side: Side) => object;
}

const named = (name: string) => (side: Side) => `${side}-${name}`;
const subjects = [{ kind: 'token', name: 'by-viewer' }];

/** Of each kind that belongs to a project. */
const inProjects: Partial<Record<Kind, Sample>> = {
  instance: { name: named('web'), spec: () => ({ image: 'tiny', cpus: 1 }) },
  job: { name: named('ended'), spec: () => ({ image: 'tiny', script: 'true' }) },
  task: { name: named('task'), spec: () => ({ cpus: 1, memoryMiB: 64, ttlMs: 60_000 }) },
  workload: {
    name: named('app'),
    spec: () => ({ template: { labels: {}, spec: { image: 'tiny', cpus: 1 } } }),
  },
  warmPool: {
    name: named('warm'),
    spec: () => ({ template: { labels: {}, spec: { image: 'tiny', cpus: 1 } } }),
  },
  jobTemplate: {
    name: named('nightly'),
    spec: () => ({ template: { labels: {}, spec: { image: 'tiny', script: 'true' } } }),
  },
  spare: {
    name: named('spare'),
    spec: () => ({ cpus: 1, memoryMiB: 64, provisioner: 'metal', ttlMs: 60_000 }),
  },
  group: { name: named('group'), spec: () => ({}) },
  volume: { name: named('data'), spec: () => ({ sizeGiB: 10 }) },
  webhook: {
    name: named('hook'),
    spec: (project) => ({
      url: 'https://receiver.test/berth',
      secrets: [{ secret: `${project}-secret`, key: 'key' }],
    }),
  },
  secret: { name: named('secret'), spec: () => ({ values: { key: 'value' } }) },
  event: { name: (side) => `evt_${side.padStart(26, '0')}` },
};

/** Of each kind of the fleet whose resources a project may have, too. */
const ofBoth: Partial<Record<Kind, Sample>> = {
  project: { name: (side) => side, spec: () => ({}) },
  token: { name: named('token') },
  binding: { name: named('binding'), spec: (project) => ({ role: 'viewer', project, subjects }) },
};

const ofFleet: Partial<Record<Kind, { readonly name: string; readonly spec?: object }>> = {
  host: { name: 'rack-empty', spec: {} },
  image: { name: 'tiny', spec: { source: 'https://images.test/new.qcow2' } },
  size: { name: 'small', spec: { cpus: 1, memoryMiB: 64 } },
  pool: { name: 'gpu', spec: {} },
  inventory: { name: 'metal', spec: { source: { kind: 'push' } } },
  role: { name: 'watcher', spec: { rules: { instance: ['read'] } } },
  token: { name: 'fleet-token' },
  binding: { name: 'fleet-binding', spec: { role: 'metrics', subjects } },
};

const listed: Asks = { own: { query: { project: 'ours' } }, foreign: { query: { project: 'theirs' } }, all: {} };

/** As it is sent back: with other labels, or a changed spec. */
function changed(key: string, spec: object = {}, labels: object = { changed: 'yes' }): Ask {
  const record = recordAt(key);
  if (!isResource(record)) throw new Error(`${key} has no metadata`);
  return { body: { metadata: { labels }, spec: { ...record.spec, ...spec } } };
}

function idAt(key: string): string {
  const record = recordAt(key);
  return isResource(record) ? record.metadata.id : '';
}

function sameLabels(key: string): object {
  const record = recordAt(key);
  return isResource(record) ? record.metadata.labels : {};
}

type OfKind = Readonly<Record<'list' | 'get' | 'create' | 'replace' | 'delete', Asks>>;

function ofKind(kind: Kind): OfKind | undefined {
  const plural = pluralOf(kind);
  const scoped = inProjects[kind];
  if (scoped) {
    const at = (side: Side): Ask => ({ params: { name: scoped.name(side) }, query: { project: side } });
    const key = (side: Side): string => `${plural}/${side}/${scoped.name(side)}`;
    const replaced = (spec?: object, labels?: (side: Side) => object) => (side: Side) => ({
      ...at(side),
      ...changed(key(side), spec, labels?.(side)),
    });
    const { spec } = scoped;
    const create = (side: Side): Ask => ({
      body: { metadata: { name: `${side}-new`, project: side }, spec: spec?.(side) },
    });
    return {
      list: { ...listed, ...watched(listed) },
      get: { ...both(at), ...both((side) => ({ params: { name: idAt(key(side)) } }), ' by id') },
      create: {
        ...both(create),
        ...both((side) => ({ ...create(side), query: { dryRun: 'true' } }), ' dry run'),
        ...(kind === 'instance' ? usesOfForeign() : {}),
      },
      replace: {
        ...both(replaced()),
        ...(kind === 'instance'
          ? both(
              replaced({ powerState: 'stopped' }, (side) => sameLabels(key(side))),
              ' power',
            )
          : {}),
      },
      delete: both(at),
    };
  }
  return ofKindOfFleet(kind, plural);
}

function ofKindOfFleet(kind: Kind, plural: string): OfKind | undefined {
  const some = ofBoth[kind];
  const one = ofFleet[kind];
  if (!some && !one) return undefined;
  const asks = (ask: (name: string, side: Side | undefined) => Ask): Asks => ({
    ...(some ? both((side) => ask(some.name(side), side)) : {}),
    ...(one ? { [some ? 'of the fleet' : '']: ask(one.name, undefined) } : {}),
  });
  const specOf = (side: Side | undefined): object | undefined => (side ? some?.spec?.(side) : one?.spec);
  return {
    list: { all: {}, ...watched({ all: {} }) },
    get: asks((name) => ({ params: { name } })),
    create: asks((_name, side) => ({ body: { metadata: { name: `${side ?? 'fleet'}-new` }, spec: specOf(side) } })),
    replace: {
      ...asks((name): Ask => ({ params: { name }, ...changed(`${plural}/${name}`) })),
      ...(kind === 'host'
        ? { paused: { params: { name: one?.name ?? '' }, ...changed(`hosts/${one?.name}`, { paused: true }, {}) } }
        : {}),
      ...(kind === 'project'
        ? both((side) => ({ params: { name: side }, ...changed(`projects/${side}`, { weight: 9 }) }), ' spec')
        : {}),
    },
    delete: asks((name) => ({ params: { name }, ...(kind === 'host' ? { query: { force: 'true' } } : {}) })),
  };
}

/** `@` stands for the revision before the first record. */
function watched(asks: Asks): Asks {
  return Object.fromEntries(
    Object.entries(asks).map(([name, { query }]) => [
      `${name} watch`,
      { query: { ...query, ...(query?.['kinds'] === undefined ? { watch: 'true' } : {}), revision: '@' } },
    ]),
  );
}

/** An instance in the own project, of what belongs to another. */
function usesOfForeign(): Asks {
  const create = (spec: object): Ask => ({
    body: { metadata: { name: 'ours-new', project: 'ours' }, spec: { image: 'tiny', cpus: 1, ...spec } },
  });
  return {
    'own priority': create({ priority: 1 }),
    'own pool': create({ placement: { pool: 'gpu' } }),
    'own volume': create({ volumes: [{ name: 'ours-data' }] }),
    'foreign volume': create({ volumes: [{ name: 'theirs-data' }] }),
    'foreign group': create({ placement: { group: 'theirs-group' } }),
    'foreign task': create({ placement: { task: 'theirs-task' } }),
  };
}

const atJob = (side: Side, name: string): Ask => ({ params: { name: `${side}-${name}` }, query: { project: side } });
const atWeb = (side: Side): Ask => ({ params: { name: `${side}-web` }, query: { project: side } });
const hosts = (ask: (host: string) => Ask): Asks => both((side) => ask(`rack-${side}`));
const asked = { cpus: '1', memoryMiB: '64' };
const spec = { cpus: 1, memoryMiB: 64 };
const registration = {
  session: 'session-2',
  agentId: `agent_${'0'.repeat(26)}`,
  bootId: 'boot',
  architecture: 'amd64',
  capacity: { VCPU: 4, MEMORY_MB: 8192, DISK_GB: 100 },
  reserved: {},
  labels: {},
  drivers: [{ name: 'fake', available: true, runs: true }],
  images: [],
  agentVersion: 'test',
};
const jobRequest = {
  schema_version: 'jobrequest.v1',
  request_id: '0b2a1f64-6a5e-4a53-9f0a-6f6f5e1d2c3b',
  source: 'manual',
  repo_url: 'http://git.test/app.git',
  commit_sha: 'a'.repeat(40),
  submitted_at: '2026-11-26T03:00:00Z',
};
const uploaded = { checksum: `sha256:${'a'.repeat(64)}`, totalBytes: '1' };
const ways = ['console', 'exec', 'vnc', 'ports/80'] as const;

/** Of routes that are not of a kind, by id. */
const others: Readonly<Record<string, Asks>> = {
  createInstances: {
    ...both((project) => ({
      body: { items: [{ metadata: { name: `${project}-new`, project }, spec: { image: 'tiny' } }] },
    })),
  },
  explainInstance: {
    ...both(atWeb),
    ...both((side) => ({ params: { name: `${side}-waiting` }, query: { project: side } }), ' waiting'),
  },
  getInstanceUsage: both(atWeb),
  listInstanceUsage: { ...both((project) => ({ query: { project } })), all: {} },
  readLog: both(atWeb),
  makeTicket: Object.assign({}, ...ways.map((way) => both((side) => ({ ...atWeb(side), body: { way } }), ` ${way}`))),
  openConsole: both(atWeb),
  openExec: both(atWeb),
  openVnc: both(atWeb),
  openPorts: both((side) => ({ ...atWeb(side), params: { name: `${side}-web`, port: '80' } })),
  getHostToken: hosts((host) => ({ params: { host } })),
  declareHostDown: hosts((host) => ({ params: { host }, body: { reason: 'power is off' } })),
  drainHost: hosts((host) => ({ params: { host }, body: {} })),
  rebalance: fleet({ body: {} }),
  showDrain: hosts((host) => ({ params: { host } })),
  cancelDrain: hosts((host) => ({ params: { host } })),
  restoreHost: hosts((host) => ({ params: { host }, body: {} })),
  showRestore: hosts((host) => ({ params: { host } })),
  cancelRestore: hosts((host) => ({ params: { host } })),
  rollHosts: fleet({ body: { hosts: ['rack-ours'] } }),
  showRoll: fleet({}),
  pauseRoll: fleet({ body: { paused: true } }),
  cancelRoll: fleet({}),
  evacuateHost: hosts((host) => ({ params: { host }, body: {} })),
  resizeInstance: both((side) => ({ ...atWeb(side), body: { memoryMiB: 1024 } })),
  migrateInstance: both((side) => ({ ...atWeb(side), body: {} })),
  cancelMigration: both((side) => atWeb(side)),
  cancelJob: both((side) => atJob(side, 'ci')),
  retryJob: both((side) => atJob(side, 'ended')),
  readJobLog: both((side) => atJob(side, 'ended')),
  readJobArtifacts: both((side) => atJob(side, 'ended')),
  sendRunPart: both((side) => ({
    params: { host: `rack-${side}`, name: loneId(side), part: 'log' },
    query: { epoch: '1', incarnation: '1', offset: '0' },
  })),
  deliverWebhook: fleet({ params: { hook: 'none' } }),
  createJobRequest: both((project) => ({ query: { project }, body: jobRequest })),
  listDeadLetters: fleet(),
  showDeadLetter: fleet({ params: { name: 'letter' } }),
  retryDeadLetter: fleet({ params: { name: 'letter' } }),
  dropDeadLetter: fleet({ params: { name: 'letter' } }),
  imageFromInstance: both((side) => ({
    params: { name: 'new' },
    query: { instance: `${side}-web`, project: side },
  })),
  uploadImage: fleet({ params: { name: 'new' }, query: uploaded }),
  listUsage: fleet(),
  getFleetMap: fleet(),
  listProjectTotals: { ...both((project) => ({ query: { project } })), all: {} },
  listHostProviders: hosts((host) => ({ params: { host } })),
  getLedgerProvider: hosts((host) => ({ params: { provider: host } })),
  getProjectUsage: both((project) => ({ params: { project } })),
  getQueue: { ...both((project) => ({ query: { project } })), all: {} },
  getCapacity: {
    ...both((project) => ({ query: { project, ...asked, losses: '1' } })),
    all: { query: { losses: '1' } },
  },
  findCapacity: {
    ...both((project) => ({ body: { project, labels: {}, spec, losses: 1 } })),
    all: { body: { losses: 1 } },
  },
  listCandidates: both((project) => ({ query: { project, ...asked } })),
  findCandidates: both((project) => ({ body: { project, labels: {}, spec } })),
  verify: { '': { body: { olderThanMs: 0 } }, repair: { body: { olderThanMs: 0, apply: true } } },
  backup: fleet(),
  registerHost: hosts((host) => ({ params: { host }, body: { ...registration, machineId: `machine-${host}` } })),
  heartbeat: hosts((host) => ({ params: { host }, body: { epoch: 1 } })),
  reportGuests: both((side) => ({
    params: { host: `rack-${side}` },
    body: {
      epoch: 1,
      reports: [
        {
          instanceId: instanceId(side),
          incarnation: 1,
          sequence: 1,
          observedGeneration: 1,
          guest: { state: 'running', ready: true, ports: [], phases: [] },
        },
      ],
    },
  })),
  watchAssignments: hosts((host) => ({ params: { host }, query: { epoch: '1' } })),
  listHostImages: hosts((host) => ({ params: { host } })),
  readImageContent: hosts((host) => ({ params: { host, hex: 'a'.repeat(64) } })),
  readMoveManifest: both((side) => ({
    params: { host: `rack-${side}`, name: instanceId(side) },
    query: { epoch: '1', id: 'none' },
  })),
  readMove: both((side) => ({
    params: { host: `rack-${side}`, name: instanceId(side), file: 'disk' },
    query: { epoch: '1', id: 'none', offset: '0', length: '1' },
  })),
  openLink: hosts((host) => ({ params: { host }, query: { epoch: '1' } })),
  getAuthorities: fleet(),
  authorityStatus: fleet(),
  rotateAuthority: fleet({ body: {} }),
  finishAuthorityRotation: fleet({ body: { force: false } }),
  createJoinToken: fleet({ body: {} }),
  listJoinTokens: fleet(),
  deleteJoinToken: fleet({ params: { name: 'none' } }),
  joinHost: fleet({ body: { token: 'x', host: 'new', request: 'x' } }),
  renewHostCertificate: fleet({ body: { certificate: 'x', request: 'x', signature: 'x' } }),
  createToken: {
    ...both((project) => ({ body: { metadata: { name: `${project}-new` }, spec: { role: 'viewer', project } } })),
    'own admin': { body: { metadata: { name: 'ours-new' }, spec: { role: 'admin', project: 'ours' } } },
    'of the fleet': { body: { metadata: { name: 'fleet-new' }, spec: { role: 'metrics' } } },
  },
  extendToken: {
    ...both((side) => ({ params: { name: `${side}-token` }, body: { expiresInSec: 60 } })),
    'of the fleet': { params: { name: 'fleet-token' }, body: { expiresInSec: 60 } },
  },
  shareInstance: {
    ...both((side) => ({ ...atWeb(side), body: { verbs: ['console'] } })),
    ...both((side) => ({ ...atWeb(side), body: { verbs: ['console', 'exec'] } }), ' exec'),
  },
  schedule: both((project) => ({
    query: { project },
    body: { requested_cpu: 1, requested_memory: 64 },
  })),
  scheduleResult: both((side) => ({ params: { task: idAt(`tasks/${side}/${side}-task`) }, query: { project: side } })),
  showSchedule: both((side) => ({ params: { task: idAt(`tasks/${side}/${side}-task`) }, query: { project: side } })),
  releaseSchedule: both((side) => ({ params: { task: idAt(`tasks/${side}/${side}-task`) }, query: { project: side } })),
  runJobTemplate: both((side) => ({ params: { name: `${side}-nightly` }, query: { project: side }, body: {} })),
  claimWarmGuest: both((side) => ({ params: { name: `${side}-warm` }, query: { project: side }, body: {} })),
  listWorkloadRevisions: both((side) => ({ params: { name: `${side}-app` }, query: { project: side } })),
  undoWorkload: both((side) => ({ params: { name: `${side}-app` }, query: { project: side }, body: {} })),
  scaleWorkload: both((side) => ({ params: { name: `${side}-app` }, query: { project: side }, body: { replicas: 2 } })),
  listWorkloadEndpoints: {
    ...both((side) => ({ params: { name: `${side}-app` }, query: { project: side } })),
    ...both((side) => ({ params: { name: `${side}-app` }, query: { project: side, watch: 'true' } }), ' watch'),
  },
  prepareSpare: both((project) => ({
    query: { project },
    body: { requested_cpu: 1, requested_memory: 64, provisioner: 'metal' },
  })),
  showSpares: both((project) => ({ query: { project } })),
  showSpare: both((side) => ({ params: { spare: idAt(`spares/${side}/${side}-spare`) }, query: { project: side } })),
  releaseSpare: both((side) => ({ params: { spare: idAt(`spares/${side}/${side}-spare`) }, query: { project: side } })),
  listWebhookDeliveries: both((side) => ({ params: { name: `${side}-hook` }, query: { project: side } })),
  resendWebhookDelivery: both((side) => ({
    params: { name: `${side}-hook`, event: `evt_${side.padStart(26, '0')}` },
    query: { project: side },
  })),
  testWebhook: both((side) => ({ params: { name: `${side}-hook` }, query: { project: side } })),
  pushInventoryNodes: fleet({ params: { name: 'metal' }, body: [] }),
  confirmInventory: fleet({ params: { name: 'metal' }, body: { hash: 'abc' } }),
  docsPage: fleet(),
  docsPageFile: fleet({ params: { file: 'start.js' } }),
  watch: watched({
    instances: { query: { kinds: 'instance' } },
    several: { query: { kinds: 'host,instance,token,event' } },
  }),
  whoAmI: fleet(),
  beginSession: fleet(),
  endSession: fleet(),
  createSessionLink: fleet(),
  openSessionLink: fleet({ body: { link: 'cut' } }),
  canI: fleet({ body: { verb: 'read', resource: 'host' } }),
  rotateAdminToken: fleet({ body: { digest: 'a'.repeat(64) } }),
  readAuditLog: fleet(),
  verifyAuditLog: fleet(),
  masterKeys: fleet(),
  listServers: fleet(),
  mcp: fleet({ body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } }),
  listLoginProviders: fleet(),
  beginBrowserLogin: fleet({ body: { provider: 'main' } }),
  finishBrowserLogin: fleet({ body: { code: 'c', state: 's' } }),
  mcpResource: fleet(),
  logIn: fleet({ body: { idToken: 'x' } }),
  isAlive: fleet(),
  isReady: { '': {}, verbose: { query: { verbose: 'true' } } },
  metrics: fleet(),
  version: fleet(),
  openApi: fleet(),
};

/** Throws for a route that has none: each route has its rows in the table. */
export function asksOf({ id, path, method, tag }: RouteDefinition, kinds: ReadonlyMap<string, Kind>): Asks {
  const own = others[id] ?? others[id.replace(/^former(.)/, (_all, letter: string) => letter.toLowerCase())];
  if (own) return own;
  const kind = kinds.get(tag);
  const asks = kind && ofKind(kind);
  const single = path.endsWith('/:name');
  const verb = { GET: single ? 'get' : 'list', POST: 'create', PUT: 'replace', DELETE: 'delete' } as const;
  if (asks && (path === `/v1/${tag}` || path === `/v1/${tag}/:name`)) return asks[verb[method]];
  throw new Error(`access-matrix/test-asks.ts has nothing to ask of ${method} ${path} (${id}); add it there`);
}
