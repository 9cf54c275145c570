// The key of each record in the store: the first segment is the kind, the rest its name.

import type { AnyRecord, RecordKind } from './records.ts';

const folders = {
  instance: 'instances',
  host: 'hosts',
  project: 'projects',
  image: 'images',
  size: 'sizes',
  pool: 'pools',
  group: 'groups',
  task: 'tasks',
  volume: 'volumes',
  job: 'jobs',
  token: 'tokens',
  role: 'roles',
  binding: 'bindings',
  event: 'events',
  provider: 'providers',
  allocation: 'allocations',
  outsideConsumer: 'outside-consumers',
  placementName: 'placement-names',
  lease: 'leases',
  idempotency: 'idempotency',
  removedHost: 'removed-hosts',
  controlPlane: 'control-planes',
  member: 'members',
  gate: 'gates',
  credential: 'credentials',
  authority: 'authority',
  hostCertificate: 'host-certificates',
  hostGeneration: 'host-generations',
  joinToken: 'join-tokens',
  spentIdToken: 'spent-id-tokens',
  secret: 'secrets',
  spare: 'spares',
  workload: 'workloads',
  workloadRevision: 'workload-revisions',
  warmPool: 'warm-pools',
  jobTemplate: 'job-templates',
  hostPlan: 'host-plans',
  hostRestore: 'host-restores',
  hostRoll: 'host-roll',
  webhook: 'webhooks',
  inventory: 'inventories',
  webhookProgress: 'webhook-progress',
  busProgress: 'bus-progress',
  secretValues: 'secret-values',
  dataKey: 'data-keys',
  cluster: 'cluster',
  leader: 'leader',
  leaderLease: 'leader-lease',
  auditHead: 'audit-heads',
} as const satisfies Record<RecordKind, string>;

interface Prefix {
  readonly prefix: string;
  readonly kind: RecordKind;
}

/** By the code of their first letter: every change looks up its kind several times. */
const prefixesByLetter: Prefix[][] = [];
for (const [kind, folder] of Object.entries(folders))
  (prefixesByLetter[folder.charCodeAt(0)] ??= []).push({ prefix: `${folder}/`, kind: kind as RecordKind }); // Object.entries loses the key type

/** The prefix of all records of a kind. */
export function prefixOf(kind: RecordKind): string {
  return `${folders[kind]}/`;
}

/**
 * The prefixes of all kinds. Instances, which have the most bytes, come first: a reader of several kinds at once reads
 * the others meanwhile.
 */
export const allPrefixes: readonly string[] = Object.values(folders).map((folder) => `${folder}/`);

/** The kind that a key holds, or undefined for a key of a newer version. */
export function kindOfKey(key: string): RecordKind | undefined {
  for (const { prefix, kind } of prefixesByLetter[key.charCodeAt(0)] ?? none) if (key.startsWith(prefix)) return kind;
  return undefined;
}

const none: readonly Prefix[] = [];

export const auditNotesPrefix = 'audit-notes/';

export const keys = {
  instance: (project: string, name: string): string => `instances/${project}/${name}`,
  host: (name: string): string => `hosts/${name}`,
  project: (name: string): string => `projects/${name}`,
  image: (name: string): string => `images/${name}`,
  size: (name: string): string => `sizes/${name}`,
  pool: (name: string): string => `pools/${name}`,
  group: (project: string, name: string): string => `groups/${project}/${name}`,
  task: (project: string, name: string): string => `tasks/${project}/${name}`,
  volume: (project: string, name: string): string => `volumes/${project}/${name}`,
  job: (project: string, name: string): string => `jobs/${project}/${name}`,
  token: (name: string): string => `tokens/${name}`,
  role: (name: string): string => `roles/${name}`,
  binding: (name: string): string => `bindings/${name}`,
  event: (project: string, id: string): string => `events/${project}/${id}`,
  provider: (id: string): string => `providers/${id}`,
  allocation: (consumerId: string, incarnation: number): string => `allocations/${consumerId}.${incarnation}`,
  outsideConsumer: (id: string): string => `outside-consumers/${id}`,
  placementName: (of: 'class' | 'trait' | 'provider', name: string): string => `placement-names/${of}/${name}`,
  lease: (host: string): string => `leases/${host}`,
  gate: (name: string): string => `gates/${name}`,
  credential: (tokenId: string): string => `credentials/${tokenId}`,
  spentIdToken: (digest: string): string => `spent-id-tokens/${digest}`,
  removedHost: (name: string): string => `removed-hosts/${name}`,
  controlPlane: (machineId: string): string => `control-planes/${machineId}`,
  member: (name: string): string => `members/${name}`,
  /** Notes of who asked for a change, of one server. They are no records: only that server reads them. */
  auditNotes: (server: string): string => `${auditNotesPrefix}${server}/`,
  auditNote: (server: string, slot: number): string => `${auditNotesPrefix}${server}/${slot}`,
  auditHead: (server: string): string => `audit-heads/${server}`,
  authority: 'authority/this',
  hostCertificate: (host: string): string => `host-certificates/${host}`,
  hostGeneration: (host: string): string => `host-generations/${host}`,
  joinToken: (id: string): string => `join-tokens/${id}`,
  secret: (project: string, name: string): string => `secrets/${project}/${name}`,
  inventory: (name: string): string => `inventories/${name}`,
  workload: (project: string, name: string): string => `workloads/${project}/${name}`,
  workloadRevision: (project: string, name: string, number: number): string =>
    `workload-revisions/${project}/${name}/${number}`,
  jobTemplate: (project: string, name: string): string => `job-templates/${project}/${name}`,
  warmPool: (project: string, name: string): string => `warm-pools/${project}/${name}`,
  spare: (project: string, name: string): string => `spares/${project}/${name}`,
  hostPlan: (host: string): string => `host-plans/${host}`,
  hostRestore: (host: string): string => `host-restores/${host}`,
  hostRoll: 'host-roll/current',
  webhook: (project: string, name: string): string => `webhooks/${project}/${name}`,
  webhookProgress: (project: string, name: string): string => `webhook-progress/${project}/${name}`,
  busProgress: (name: string): string => `bus-progress/${name}`,
  secretValues: (project: string, name: string): string => `secret-values/${project}/${name}`,
  dataKey: (id: string): string => `data-keys/${id}`,
  cluster: 'cluster/this',
  leader: 'leader/current',
  leaderLease: 'leader-lease/current',
  idempotency: (project: string, key: string): string => `idempotency/${project}/${key}`,
};

/** The key of a record. */
export function keyOf(record: AnyRecord): string {
  switch (record.kind) {
    case 'instance':
      return keys.instance(record.metadata.project, record.metadata.name);
    case 'task':
      return keys.task(record.metadata.project, record.metadata.name);
    case 'job':
      return keys.job(record.metadata.project, record.metadata.name);
    case 'volume':
      return keys.volume(record.metadata.project, record.metadata.name);
    case 'group':
      return keys.group(record.metadata.project, record.metadata.name);
    case 'event':
      return keys.event(record.metadata.project, record.metadata.name);
    case 'host':
    case 'project':
    case 'image':
    case 'size':
    case 'pool':
    case 'token':
    case 'role':
    case 'binding':
      return keys[record.kind](record.metadata.name);
    case 'provider':
      return keys.provider(record.id);
    case 'allocation':
      return keys.allocation(record.consumer.id, record.consumer.incarnation);
    case 'outsideConsumer':
      return keys.outsideConsumer(record.id);
    case 'placementName':
      return keys.placementName(record.of, record.name);
    case 'lease':
      return keys.lease(record.host);
    case 'removedHost':
      return keys.removedHost(record.host);
    case 'controlPlane':
      return keys.controlPlane(record.machineId);
    case 'member':
      return keys.member(record.name);
    case 'credential':
      return keys.credential(record.tokenId);
    case 'auditHead':
      return keys.auditHead(record.server);
    case 'spentIdToken':
      return keys.spentIdToken(record.digest);
    case 'gate':
      return keys.gate(record.name);
    case 'hostCertificate':
    case 'hostGeneration':
      return keys[record.kind](record.host);
    case 'joinToken':
      return keys.joinToken(record.id);
    case 'secret':
      return keys.secret(record.metadata.project, record.metadata.name);
    case 'inventory':
      return keys.inventory(record.metadata.name);
    case 'workload':
      return keys.workload(record.metadata.project, record.metadata.name);
    case 'jobTemplate':
      return keys.jobTemplate(record.metadata.project, record.metadata.name);
    case 'warmPool':
      return keys.warmPool(record.metadata.project, record.metadata.name);
    case 'workloadRevision':
      return keys.workloadRevision(record.project, record.name, record.number);
    case 'spare':
      return keys.spare(record.metadata.project, record.metadata.name);
    case 'hostPlan':
      return keys.hostPlan(record.host);
    case 'hostRestore':
      return keys.hostRestore(record.host);
    case 'webhook':
      return keys.webhook(record.metadata.project, record.metadata.name);
    case 'webhookProgress':
      return keys.webhookProgress(record.project, record.name);
    case 'busProgress':
      return keys.busProgress(record.name);
    case 'secretValues':
      return keys.secretValues(record.project, record.name);
    case 'dataKey':
      return keys.dataKey(record.id);
    case 'authority':
    case 'cluster':
    case 'leader':
    case 'leaderLease':
    case 'hostRoll':
      return keys[record.kind];
    case 'idempotency':
      throw new TypeError('an idempotency record does not know its key');
  }
}
