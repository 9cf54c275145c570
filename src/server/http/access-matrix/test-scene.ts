// A small fleet of two projects for tests of access: `ours`, in which the roles are held, and `theirs`. Whatever belongs to a project
// has its name in its own name, so that an answer that tells too much can be seen.

import { silentLogger } from '../../../base/log.ts';
import { randomSecret, systemClock, systemPrng } from '../../../base/system.ts';
import type { Event } from '../../../api/resources/event.ts';
import type { Instance } from '../../../api/resources/instance.ts';
import type { JobStatus } from '../../../api/resources/job.ts';
import type { Inventory } from '../../../api/resources/inventory.ts';
import type { Pool } from '../../../api/resources/pool.ts';
import type { Size } from '../../../api/resources/size.ts';
import type { Principal } from '../../../core/access/principal.ts';
import { bearerOf, testBinding, testRole, testToken } from '../../../core/access/testing.ts';
import { encodeRecord } from '../../../core/state/codec.ts';
import { defaultPolicy } from '../../../core/state/context.ts';
import { allPrefixes, keyOf, keys } from '../../../core/state/keys.ts';
import type { Allocation, AnyRecord } from '../../../core/state/records.ts';
import {
  testGroup,
  testHost,
  testImage,
  testInstance,
  testJob,
  testProject,
  testSpare,
  testTask,
  testJobTemplate,
  testWarmPool,
  testWorkload,
  testVolume,
} from '../../../core/testing.ts';
import { createMemoryStore } from '../../../store/memory/memory-store.ts';
import type { ImageContent } from '../../images/image-content.ts';
import { MemoryRunStorage } from '../../runs/memory-run-storage.ts';
import { Outside } from '../../outside.ts';
import { defaultRunLimits, RunFiles } from '../../runs/run-files.ts';
import { startControlPlane } from '../../server.ts';
import { minting } from '../identity/mint-token.ts';
import type { HostLinks } from '../agent-link/host-links.ts';

export type Side = 'ours' | 'theirs';
export const sides = ['ours', 'theirs'] as const satisfies readonly Side[];

/** Stands in user-data, environments and commands of a project. */
export const secretOf = (side: Side): string => `secret-of-${side}`;

/** Never in an answer to anybody but a host and an admin. */
const idOf = (prefix: string, side: Side, name: string): string =>
  `${prefix}_${`${side}${name}`.padStart(26, '0').slice(-26)}`;

export const instanceId = (side: Side): string => idOf('inst', side, 'web');
const runnerId = (side: Side): string => idOf('inst', side, 'runner');
/** Has a run that is not over. */
export const loneId = (side: Side): string => idOf('inst', side, 'lone');

function recordsOf(side: Side): AnyRecord[] {
  const within = (prefix: string, name: string) => ({
    id: idOf(prefix, side, name),
    name: `${side}-${name}`,
    project: side,
    labels: { owner: side },
  });
  const secret = secretOf(side);
  const host = `rack-${side}`;
  const placed = { phase: 'Running', host, incarnation: 1, observedGeneration: 1 } as const;
  const container = { name: 'main', command: [secret], args: [secret], env: { TOKEN: secret }, ports: [] };
  const program = { script: secret, env: { TOKEN: secret }, artifacts: [] };
  const run = { ...program, timeLimitMs: 60_000, graceMs: 0, holdOnFailure: false };
  const web = testInstance('', { userData: secret, containers: [container] }, placed, within('inst', 'web'));
  const runner = testInstance('', { run }, placed, within('inst', 'runner'));
  const lone = testInstance('', { run }, placed, within('inst', 'lone'));
  const job = testJob('', program, jobStatusOf(side), within('job', 'ci'));
  const ended = testJob('', program, { ...jobStatusOf(side), phase: 'Failed', endedAtMs: 5 }, within('job', 'ended'));
  const named = <R extends { readonly metadata: object }>(record: R, prefix: string, name: string): R => ({
    ...record,
    metadata: { ...record.metadata, ...within(prefix, name) },
  });
  const token = testToken(`${side}-token`, { role: 'viewer', project: side }, { id: idOf('tok', side, 'token') });
  const subjects = [{ kind: 'token' as const, name: token.metadata.name }];
  return [
    testProject(side),
    ...testHost(host, { capacity: { VCPU: 64, MEMORY_MB: 65_536, DISK_GB: 100 } }),
    web,
    runner,
    claimOf(web, host),
    claimOf(runner, host),
    lone,
    claimOf(lone, host),
    testInstance('', { cpus: 512, priority: 1 }, {}, within('inst', 'waiting')),
    job,
    ended,
    named(testTask(''), 'task', 'task'),
    named(testWorkload(''), 'wkl', 'app'),
    named(testWarmPool(''), 'warm', 'warm'),
    named(testJobTemplate('', program), 'jobt', 'nightly'),
    named(testSpare(''), 'spare', 'spare'),
    named(testVolume(''), 'vol', 'data'),
    named(testGroup(''), 'grp', 'group'),
    ...(['secret', 'signing'] as const).map((name) => ({
      kind: 'secret' as const,
      schemaVersion: 1,
      metadata: { ...testGroup('').metadata, ...within('secret', name) },
      spec: { description: '' },
      status: { version: 1, keys: { key: { updatedAtMs: 1 } } },
    })),
    {
      kind: 'webhook',
      schemaVersion: 1,
      metadata: { ...testGroup('').metadata, ...within('hook', 'hook') },
      spec: {
        description: '',
        url: 'https://receiver.test/berth',
        events: ['*'],
        secrets: [{ secret: `${side}-signing`, key: 'key' }],
        allProjects: false,
        paused: false,
      },
      status: { asked: [] },
    },
    eventOf(side, side),
    token,
    testBinding(`${side}-binding`, { role: 'viewer', project: side, subjects }),
  ];
}

function jobStatusOf(side: Side): Partial<JobStatus> {
  const attempt = { number: 1, instance: `${side}-runner`, instanceId: runnerId(side), createdAtMs: 1 };
  return {
    phase: 'Running',
    attempt: 1,
    attempts: [{ ...attempt, outcome: 'failure', logBytes: 3, artifactsBytes: 3 }],
  };
}

function claimOf({ metadata: { id, name, project } }: Instance, host: string): Allocation {
  const [{ metadata }] = testHost(host);
  const amounts = { [metadata.id]: { VCPU: 1, MEMORY_MB: 512 } };
  return { kind: 'allocation', consumer: { id, incarnation: 1, project, name }, host, amounts, driver: 'fake' };
}

function eventOf(project: string, name: string): Event {
  const id = `evt_${name.padStart(26, '0')}`;
  const subject = { kind: project === '' ? 'host' : 'instance', id: 'x', name: `${name}-web`, project };
  return {
    kind: 'event',
    schemaVersion: 1,
    metadata: { id, name: id, project, revision: 0, generation: 1, labels: {}, createdAtMs: 1 },
    spec: { subject, type: 'Normal', reason: 'Test', message: `about ${name}-web` },
    status: {},
  };
}

const fleetToken = testToken('fleet-token', { role: 'metrics' });
const plain = { revision: 0, generation: 1, project: '', labels: {}, createdAtMs: 0 };
const size: Size = {
  kind: 'size',
  schemaVersion: 1,
  metadata: { ...plain, id: `size_${'0'.repeat(26)}`, name: 'small' },
  spec: { cpus: 1, memoryMiB: 512 },
  status: {},
};
const pool: Pool = {
  kind: 'pool',
  schemaVersion: 1,
  metadata: { ...plain, id: `pool_${'0'.repeat(26)}`, name: 'gpu' },
  spec: { description: '' },
  status: {},
};
const inventory: Inventory = {
  kind: 'inventory',
  schemaVersion: 1,
  metadata: { ...plain, id: `inv_${'0'.repeat(26)}`, name: 'metal' },
  spec: { description: '', source: { kind: 'push' }, intervalMs: 10_000, lossShareMax: 0.2 },
  status: { state: 'Held', message: '', hosts: 9, skipped: [], waiting: { hash: 'abc', gone: 9 } },
};

/** Who asks: a column of the table each. */
const share = { instance: 'ours-web', instanceId: instanceId('ours'), verbs: ['console' as const, 'logs' as const] };
const inOurs = { project: 'ours' };
const sharer = testToken('sharer', { role: 'admin' });
const bearers = {
  viewer: testToken('by-viewer', { role: 'viewer', ...inOurs }),
  user: testToken('by-user', { role: 'user', ...inOurs }),
  'project-admin': testToken('by-project-admin', { role: 'project-admin', ...inOurs }),
  'fleet-operator': testToken('by-fleet-operator', { role: 'fleet-operator' }),
  metrics: testToken('by-metrics', { role: 'metrics' }),
  admin: testToken('by-admin', { role: 'admin' }),
  share: testToken('by-share', { share, ...inOurs, owner: { name: 'sharer', id: sharer.metadata.id } }),
  removed: testToken('by-removed', { role: 'admin' }),
} as const;
export type Column = keyof typeof bearers | 'host' | 'stranger';
export const columns: readonly Column[] = [
  'viewer',
  'user',
  'project-admin',
  'fleet-operator',
  'metrics',
  'admin',
  'share',
  'host',
  'removed',
  'stranger',
];

/** `removed`: the bearer of a token that has been deleted since. */
export function principalOf(column: Column): Principal | undefined {
  if (column === 'stranger') return undefined;
  if (column === 'host') return { kind: 'host', host: 'rack-ours' };
  return bearerOf(bearers[column]);
}

const { removed: _removed, ...stored } = bearers;
const scene: readonly AnyRecord[] = [
  testImage('tiny', { aliases: ['default'] }),
  size,
  pool,
  inventory,
  ...testHost('rack-empty'),
  testRole('watcher', { instance: ['read'] }),
  fleetToken,
  testBinding('fleet-binding', { role: 'metrics', subjects: [{ kind: 'token', name: 'fleet-token' }] }),
  eventOf('', 'fleet'),
  sharer,
  ...Object.values(stored),
  ...sides.flatMap(recordsOf),
];
const sceneKeys = new Set(scene.map(keyOf));

/** What belongs to the process and not to the scene. */
const kept: ReadonlySet<string> = new Set([keys.cluster, keys.leader, keys.leaderLease]);

export function recordAt(key: string): AnyRecord {
  const found = scene.find((record) => keyOf(record) === key);
  if (!found) throw new Error(`nothing is at ${key}`);
  return found;
}

export type Scene = Awaited<ReturnType<typeof startScene>>;

/** A control plane without controllers: another leads. */
export async function startScene(links: HostLinks) {
  const store = createMemoryStore();
  const leader = { kind: 'leader', holder: 'another', term: 1 } as const;
  await store.commit([], [{ key: keys.leader, value: encodeRecord(leader) }]);
  const outside = new Outside();
  outside.add({
    report: () => [],
    deadLetters: { ...letters, list: () => Promise.resolve({ items: [letter], more: false }) },
  });
  const storage = new MemoryRunStorage();
  const plane = await startControlPlane({
    store,
    clock: systemClock,
    idleMs: () => systemClock.monotonicMs(),
    prng: systemPrng(),
    log: silentLogger,
    policy: { ...defaultPolicy, cpuAllocationRatio: 1 },
    links,
    imageContent,
    outside,
    runFiles: new RunFiles({ storage, limits: defaultRunLimits, clock: systemClock }),
    mint: minting(randomSecret),
    version: 'test',
    name: 'server',
    leaseMs: 600_000,
    secrets: { tokenSecret: 'x'.repeat(43), operatorToken: 'operator' },
  });
  for (const side of sides)
    for (const part of ['log', 'artifacts'] as const)
      await storage.write({ instanceId: runnerId(side), part }, { at: 0, bytes: bytesOf(side), durable: false });
  let staged = -1;
  return {
    plane,
    /** Puts every record back, if anything has changed. Resolves with the revision. */
    async reset(): Promise<number> {
      const { cache, committer } = plane.decider;
      if (cache.revision === staged) return staged;
      const known = new Map<string, number>();
      for (const prefix of allPrefixes)
        for (const { key, revision } of (await store.list(prefix)).entries) known.set(key, revision);
      const puts = scene.map((value) => ({ key: keyOf(value), ifRevision: known.get(keyOf(value)) ?? 0, value }));
      const others = [...known].filter(([key]) => !sceneKeys.has(key) && !kept.has(key));
      const removals = others.map(([key, ifRevision]) => ({ key, ifRevision, value: null }));
      const outcome = await committer.submit({ changes: [...puts, ...removals] });
      if (!outcome.ok) throw new Error(`the scene could not be set: ${outcome.key}`);
      staged = outcome.revision;
      return staged;
    },
    stop: () => plane.stop(),
  };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from(text);
}

const letter = { id: 'letter', copies: 1, movedBy: 'berth', reason: 'NotJson', bytes: 1 } as const;
const letters = {
  show: () => Promise.resolve(letter),
  retry: () => Promise.resolve(letter),
  drop: () => Promise.resolve(letter),
};

/** Takes every file, and has one. */
const imageContent: ImageContent = {
  receive: ({ totalBytes }) =>
    Promise.resolve({ complete: true, receivedBytes: totalBytes, digest: 'sha256:x', virtualSizeBytes: 1 }),
  take: () => Promise.resolve({ hex: 'a'.repeat(64), digest: 'sha256:x', virtualSizeBytes: 1 }),
  read: () => Promise.resolve({ sizeBytes: 1, start: 0, bytes: bytesOf('x') }),
  sweep: () => Promise.resolve(),
};
