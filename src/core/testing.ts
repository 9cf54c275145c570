// Small fleets for tests of decisions: a cache, records with defaults, a fixed context.

import { seededPrng } from '../base/prng.ts';
import type { GuestStatus } from '../api/agent-protocol.ts';
import type { Group, GroupSpec } from '../api/resources/group.ts';
import type { Host } from '../api/resources/host.ts';
import type { Image } from '../api/resources/image.ts';
import type { Instance, InstanceSpec, InstanceStatus } from '../api/resources/instance.ts';
import type { Amounts, Metadata } from '../api/resources/metadata.ts';
import type { Project, ProjectSpec } from '../api/resources/project.ts';
import type { Job } from '../api/resources/job.ts';
import type { Workload, WorkloadSpec } from '../api/resources/workload.ts';
import type { JobTemplate } from '../api/resources/job-template.ts';
import type { WarmPool } from '../api/resources/warm-pool.ts';
import type { Spare } from '../api/resources/spare.ts';
import type { Task } from '../api/resources/task.ts';
import type { Volume } from '../api/resources/volume.ts';
import { inventoriesOf } from './ledger/inventory.ts';
import { Cache } from './state/cache.ts';
import { type Context, defaultPolicy, type Policy } from './state/context.ts';
import { keyOf } from './state/keys.ts';
import type { Plan } from './state/plan.ts';
import type { AnyRecord, Provider } from './state/records.ts';

export function testContext(changes: Partial<Omit<Context, 'policy'>> & { policy?: Partial<Policy> } = {}): Context {
  const prng = seededPrng(1);
  let count = 0;
  return {
    nowMs: 1_000_000,
    monotonicMs: 1_000_000,
    prng,
    newId: (prefix) => `${prefix}_${String(++count).padStart(26, '0')}`,
    ...changes,
    policy: { ...defaultPolicy, cpuAllocationRatio: 1, ...changes.policy }, // as `testHost` is built
  };
}

/** A cache with these records, committed one by one. */
export function testCache(records: readonly AnyRecord[], nowMs = (): number => 1_000_000): Cache {
  const cache = new Cache(nowMs);
  for (const record of records) addRecord(cache, record);
  return cache;
}

export function addRecord(cache: Cache, record: AnyRecord): void {
  const revision = cache.revision + 1;
  cache.apply([{ key: keyOf(record), value: record, revision }], revision);
}

/** A cache with one image and these hosts. */
export function testFleet(hosts: Readonly<Record<string, TestHost>>, image = testImage()): Cache {
  return testCache([image, ...Object.entries(hosts).flatMap(([name, host]) => testHost(name, host))]);
}

/** Applies a Plan to the cache as if it had been committed. Throws when a condition does not hold. */
export function commitPlan(cache: Cache, plan: Plan): void {
  const assumed = cache.assume(plan);
  if (!assumed.ok) throw new Error(`the Plan does not hold: ${assumed.key}`);
  cache.confirm(assumed, cache.revision + 1);
  cache.apply([], cache.revision + 1);
}

function metadata(name: string, prefix: string, project: string, changes: Partial<Metadata> = {}): Metadata {
  const id = `${prefix}_${name.replaceAll('-', '').padStart(26, '0')}`;
  return { id, name, project, revision: 0, generation: 1, labels: {}, createdAtMs: 0, ...changes };
}

export function testImage(name = 'tiny', spec: Partial<Image['spec']> = {}): Image {
  return {
    kind: 'image',
    schemaVersion: 1,
    metadata: metadata(name, 'img', ''),
    spec: {
      source: 'file:///image',
      decompress: 'none',
      format: 'qcow2',
      nocloud: true,
      architecture: 'amd64',
      aliases: [],
      preload: false,
      defaults: { cpus: 1, memoryMiB: 512 },
      ...spec,
    },
    status: {},
  };
}

export function testGroup(name: string, spec: Partial<GroupSpec> = {}): Group {
  return {
    kind: 'group',
    schemaVersion: 1,
    metadata: metadata(name, 'grp', 'default'),
    spec: { description: '', ...spec },
    status: {},
  };
}

export interface TestHost {
  readonly ready?: boolean;
  readonly spec?: Partial<Host['spec']>;
  readonly status?: Partial<Host['status']>;
  readonly labels?: Record<string, string>;
  readonly capacity?: Amounts;
}

/** The agent that registers in tests. */
export const testAgentId = `agent_${'0'.repeat(26)}`;

/** A host and its provider. */
export function testHost(name: string, options: TestHost = {}): [Host, Provider] {
  const capacity = options.capacity ?? { VCPU: 8, MEMORY_MB: 16_384, DISK_GB: 100 };
  const ready = options.ready ?? true;
  const host: Host = {
    kind: 'host',
    schemaVersion: 1,
    metadata: metadata(name, 'host', '', { labels: options.labels ?? {} }),
    spec: { paused: false, allocationRatios: {}, ...options.spec },
    status: {
      epoch: 1,
      session: 'session-1',
      machineId: `machine-${name}`,
      architecture: 'amd64',
      capacity,
      drivers: [{ name: 'fake', available: true, runs: true }],
      images: [],
      unknownGuests: [],
      conditions: [
        {
          type: 'Ready',
          status: ready ? 'True' : 'False',
          reason: 'Test',
          message: ready ? 'ready' : 'its agent is silent',
          sinceMs: 0,
        },
      ],
      ...options.status,
    },
  };
  const provider: Provider = {
    kind: 'provider',
    id: host.metadata.id,
    host: name,
    parent: null,
    generation: 1,
    inventories: inventoriesOf(host.spec, capacity, {}),
    traits: [],
    aggregates: [],
  };
  return [host, provider];
}

export function testInstance(
  name: string,
  spec: Partial<InstanceSpec> = {},
  status: Partial<InstanceStatus> = {},
  meta: Partial<Metadata> = {},
): Instance {
  return {
    kind: 'instance',
    schemaVersion: 1,
    metadata: metadata(name, 'inst', 'default', meta),
    spec: {
      image: 'tiny',
      powerState: 'running',
      restartPolicy: 'Never',
      exclusive: false,
      placement: {},
      ports: [],
      sshKeys: [],
      userData: '',
      stopGraceMs: 10_000,
      ...spec,
    },
    status: { phase: 'Pending', incarnation: 0, restartCount: 0, observedGeneration: 0, conditions: [], ...status },
  };
}

export function testProject(name: string, spec: Partial<ProjectSpec> = {}): Project {
  return {
    kind: 'project',
    schemaVersion: 1,
    metadata: metadata(name, 'proj', ''),
    spec: { description: '', weight: 1, ...spec },
    status: {},
  };
}

export function testTask(name: string, spec: Partial<Task['spec']> = {}, status: Partial<Task['status']> = {}): Task {
  return {
    kind: 'task',
    schemaVersion: 1,
    metadata: metadata(name, 'task', 'default'),
    spec: { cpus: 2, memoryMiB: 1024, placement: {}, ports: [], ttlMs: 60_000, ...spec },
    status: { phase: 'Pending', conditions: [], ...status },
  };
}

export function testWorkload(name: string, spec: Partial<WorkloadSpec> = {}): Workload {
  return {
    kind: 'workload',
    schemaVersion: 1,
    metadata: metadata(name, 'wkl', 'default'),
    spec: testWorkloadSpec(spec),
    status: {
      ...{ revision: 1, wanted: 3, copies: 0, updated: 0, ready: 0, available: 0 },
      failures: [],
      conditions: [],
    },
  };
}

export function testWorkloadSpec(
  { template, ...spec }: Partial<WorkloadSpec> = {},
  instance: Partial<Instance['spec']> = {},
): WorkloadSpec {
  return {
    template: template ?? { labels: {}, spec: testInstance('', instance).spec },
    ...{ replicas: 3, paused: false },
    strategy: {
      ...{ type: 'RollingUpdate', maxSurge: 1, maxUnavailable: 0 },
      ...{ minHealthyMs: 1_000, progressDeadlineMs: 60_000, autoRevert: true },
    },
    ...spec,
  };
}

export function testWarmPool(
  name: string,
  spec: Partial<WarmPool['spec']> = {},
  status: Partial<WarmPool['status']> = {},
): WarmPool {
  return {
    kind: 'warmPool',
    schemaVersion: 1,
    metadata: metadata(name, 'warm', 'default'),
    spec: { template: { labels: {}, spec: testInstance('').spec }, size: 2, state: 'running', ...spec },
    status: { template: 1, wanted: 2, guests: 0, ready: 0, hits: 0, misses: 0, conditions: [], ...status },
  };
}

export function testJobTemplate(
  name: string,
  job: Partial<Job['spec']> = {},
  spec: Partial<JobTemplate['spec']> = {},
  status: Partial<JobTemplate['status']> = {},
): JobTemplate {
  return {
    kind: 'jobTemplate',
    schemaVersion: 1,
    metadata: metadata(name, 'jobt', 'default'),
    spec: { template: { labels: {}, spec: testJob('', job).spec }, parameters: [], paused: false, ...spec },
    status: { jobs: 0, conditions: [], ...status },
  };
}

export function testSpare(
  name: string,
  spec: Partial<Spare['spec']> = {},
  status: Partial<Spare['status']> = {},
): Spare {
  return {
    kind: 'spare',
    schemaVersion: 1,
    metadata: metadata(name, 'spare', 'default'),
    spec: {
      ...{ cpus: 2, memoryMiB: 1024, placement: {}, ports: [], provisioner: 'metal', variables: {} },
      ...{ ttlMs: 60_000, attemptsMax: 3, provisionMs: 600_000 },
      ...spec,
    },
    status: { phase: 'Pending', attempt: 0, conditions: [], ...status },
  };
}

export function testJob(
  name: string,
  spec: Partial<Job['spec']> = {},
  status: Partial<Job['status']> = {},
  meta: Partial<Metadata> = {},
): Job {
  return {
    kind: 'job',
    schemaVersion: 1,
    metadata: metadata(name, 'job', 'default', meta),
    spec: {
      label: 'tiny',
      script: 'true',
      env: {},
      artifacts: [],
      sshKeys: [],
      timeoutMs: 60_000,
      retries: { max: 2, on: ['infrastructure'] },
      holdOnFailureMs: 0,
      ...spec,
    },
    status: { phase: 'Queued', attempt: 0, attempts: [], ...status },
  };
}

export function testVolume(
  name: string,
  spec: Partial<Volume['spec']> = {},
  status: Partial<Volume['status']> = {},
): Volume {
  return {
    kind: 'volume',
    schemaVersion: 1,
    metadata: metadata(name, 'vol', 'default'),
    spec: { sizeGiB: 10, snapshots: [], ...spec },
    status: { phase: 'Pending', made: false, observedGeneration: 0, conditions: [], ...status },
  };
}

export function testGuest(changes: Partial<GuestStatus> = {}): GuestStatus {
  return { state: 'running', ready: false, ports: [], phases: [], ...changes };
}
