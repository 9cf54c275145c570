// An example of every request that has a body, and of every name in a path: for the API page and the documentation. examples.test.ts checks
// each against the schema of its route.

const digest = 'b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9';
const agentId = 'agent_01k9zq4w7v3m5n8p2r6t9x1y3z';
const pem = '-----BEGIN CERTIFICATE-----\nMIIB...\n-----END CERTIFICATE-----\n';

const specs = {
  instance: { image: 'debian-12', cpus: 2, memoryMiB: 2048, diskGiB: 20 },
  host: { paused: false, pool: 'edge' },
  project: { weight: 2, quota: { VCPU: 64, MEMORY_MB: 131_072 } },
  image: { source: 'https://images.example.com/debian-12.qcow2', checksum: `sha256:${digest}` },
  size: { cpus: 2, memoryMiB: 4096, diskGiB: 20 },
  pool: { profile: 'best-fit', hostLimits: { VCPU: 64 } },
  group: { description: 'one on each host', maxPerHost: 1 },
  task: { cpus: 2, memoryMiB: 2048, ttlMs: 3_600_000 },
  workload: {
    template: { labels: { app: 'shop' }, spec: { image: 'debian-12', cpus: 2, memoryMiB: 2048 } },
    replicas: 3,
    strategy: { maxSurge: 1, maxUnavailable: 0 },
  },
  warmPool: {
    template: { labels: { app: 'ci' }, spec: { image: 'debian-12', cpus: 2, memoryMiB: 2048 } },
    size: 2,
    schedule: { timeZone: 'Europe/Berlin', windows: [{ from: '0 8 * * 1-5', to: '0 18 * * 1-5', size: 10 }] },
  },
  spare: { cpus: 4, memoryMiB: 8192, provisioner: 'metal', ready: { tcp: { port: 22 } }, ttlMs: 3_600_000 },
  volume: { sizeGiB: 10 },
  job: { label: 'debian-12', script: 'make test', timeoutMs: 1_800_000 },
  jobTemplate: {
    template: { labels: { team: 'web' }, spec: { label: 'debian-12', script: 'make nightly' } },
    parameters: [{ name: 'MODE', default: 'full' }],
    schedule: { timeZone: 'Europe/Berlin', cron: '0 3 * * 1-5' },
  },
  role: { description: 'restarts instances', rules: { instance: ['read', 'power'] } },
  binding: { role: 'user', project: 'web', subjects: [{ kind: 'token', name: 'ci' }] },
  secret: { values: { password: 'correct horse' } },
  inventory: { source: { kind: 'http', url: 'http://inventory.example.com/nodes' }, pool: 'edge' },
  webhook: {
    url: 'https://receiver.example.com/berth',
    events: ['berth.v1.instance.*'],
    secrets: [{ secret: 'webhook-mine', key: 'current' }],
  },
} as const;

const inProject: ReadonlySet<string> = new Set([
  'instance',
  'group',
  'task',
  'workload',
  'warmPool',
  'jobTemplate',
  'spare',
  'volume',
  'job',
  'secret',
  'webhook',
]);

const title = (kind: string): string => `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;

const ofKinds = Object.entries(specs).flatMap(([kind, spec]): [string, unknown][] => {
  const name = pathExamples(kind);
  const create = { metadata: { name, ...(inProject.has(kind) ? { project: 'web' } : {}) }, spec };
  return [
    [`create${title(kind)}`, create],
    [`replace${title(kind)}`, { metadata: { labels: { team: 'web' } }, spec }],
  ];
});

function pathExamples(kind: string): string {
  return kind === 'instance'
    ? 'web-1'
    : kind === 'host'
      ? 'rack-7'
      : kind === 'image'
        ? 'debian-12'
        : `my-${kind.toLowerCase()}`;
}

/** By id of the route. */
export const bodyExamples: Readonly<Record<string, unknown>> = {
  ...Object.fromEntries(ofKinds),
  createInstances: {
    items: ['web-1', 'web-2'].map((name) => ({ metadata: { name, project: 'web' }, spec: specs.instance })),
  },
  makeTicket: { way: 'console' },
  rotateAuthority: { overlapMs: 604_800_000 },
  finishAuthorityRotation: { force: false },
  createJoinToken: { pool: 'edge', uses: 3, expiresInMs: 3_600_000 },
  joinHost: { token: 'berth_j_...', host: 'rack-7', request: pem.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST') },
  renewHostCertificate: {
    certificate: pem,
    request: pem.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST'),
    signature: 'MEUC',
  },
  deliverWebhook: { ref: 'refs/heads/main', after: 'a'.repeat(40), repository: { id: 7, full_name: 'team/app' } },
  createJobRequest: {
    schema_version: 'jobrequest.v1',
    request_id: '0b2a1f64-6a5e-4a53-9f0a-6f6f5e1d2c3b',
    source: 'manual',
    repo_url: 'https://git.example.com/team/app.git',
    commit_sha: 'a'.repeat(40),
    submitted_at: '2026-11-26T03:00:00Z',
  },
  findCapacity: { spec: { cpus: 2, memoryMiB: 4096 }, losses: 1 },
  findCandidates: { project: 'web', spec: { cpus: 2, memoryMiB: 4096 }, limit: 5 },
  rebalance: { budget: 20, thresholdPercent: 50, movesMax: 4, coolDownMs: 3_600_000 },
  drainHost: { stopOthers: false, movesMax: 2, deadlineMs: 3_600_000, atDeadline: 'leave' },
  restoreHost: { movesMax: 2, deadlineMs: 3_600_000 },
  rollHosts: { pool: 'rack2', maxAtOnce: 2 },
  pauseRoll: { paused: true },
  evacuateHost: {},
  resizeInstance: { cpus: 4, memoryMiB: 8192 },
  migrateInstance: { to: 'rack2-7' },
  runJobTemplate: { spec: { parameters: { MODE: 'short' } } },
  verify: { apply: false },
  formerVerify: { apply: false },
  createToken: { metadata: { name: 'ci' }, spec: { role: 'user', project: 'web', expiresInSec: 2_592_000 } },
  extendToken: { expiresInSec: 3_600 },
  shareInstance: { verbs: ['console', 'logs'], expiresInSec: 7_200 },
  openSessionLink: { link: 'eyJieSI6eyJraW5kIjoiYWRtaW4ifX0.signature' },
  canI: { verb: 'create', resource: 'instance', project: 'web' },
  rotateAdminToken: { digest },
  registerHost: {
    session: 'session-0001',
    machineId: '4c4c4544-0044-4a10-8052-b3c04f4e4d32',
    agentId,
    bootId: '7f9c2ba4-e88f-4d1e-9a44-2c5f0c1d8e11',
    architecture: 'amd64',
    capacity: { VCPU: 32, MEMORY_MB: 131_072, DISK_GB: 1_800 },
    reserved: { MEMORY_MB: 2_048 },
    labels: {},
    drivers: [{ name: 'qemu', available: true, accelerator: 'kvm', runs: true }],
    images: [],
    agentVersion: '0.1.0',
  },
  heartbeat: { epoch: 3 },
  reportGuests: { epoch: 3, reports: [] },
  beginBrowserLogin: { provider: 'main', returnTo: '/ui/instances' },
  finishBrowserLogin: { code: 'SplxlOBeZQQYbYS6WxSbIA', state: 'af0ifjsldkj' },
  logIn: { idToken: 'eyJ...' },
  pushInventoryNodes: [{ name: 'metal-0', cpu: 32, memory: 131_072, usage_cpu: 4, usage_mem: 8_192, ip: '10.20.0.1' }],
  declareHostDown: { reason: 'its power is off' },
  confirmInventory: { hash: '9d2c4f6b1a3e5870' },
  claimWarmGuest: { metadata: { labels: { build: '17' } }, spec: { ttlMs: 3_600_000, coldStart: false } },
  undoWorkload: { to: 3 },
  scaleWorkload: { replicas: 5 },
  prepareSpare: {
    requested_cpu: 4,
    requested_memory: 8192,
    pool: 'edge',
    provisioner: 'metal',
    ready: { tcp: { port: 22 } },
    ttl_s: 3_600,
  },
  schedule: { requested_cpu: 4, requested_memory: 8192, requested_pool: 'edge', dedicated: false },
  mcp: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
};

/** Of parameters in paths. */
export function pathExample(parameter: string, routePath: string): string {
  const fixed: Readonly<Record<string, string>> = {
    host: 'rack-7',
    provider: 'rack-7',
    project: 'web',
    hook: 'github',
    hex: digest,
    file: 'swagger-ui.css',
    event: 'evt_01k9zq4w7v3m5n8p2r6t9x1y3z',
    task: 'task_01k9zq4w7v3m5n8p2r6t9x1y3z',
    port: '8080',
    part: 'log',
  };
  const kind = /^\/v1\/([a-z]+)s\/:name/.exec(routePath)?.[1];
  return fixed[parameter] ?? (kind === undefined ? 'my-name' : pathExamples(kind));
}
