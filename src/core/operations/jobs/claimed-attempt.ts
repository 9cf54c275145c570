// The instance of an attempt of a job that names a warm pool: a guest of the pool that waits for a program, or a new instance of its
// template. The program of a claimed guest comes over the port of its runner, so that a repository, which is fetched to a disk, needs a new one.

import { ApiError } from '../../../api/errors.ts';
import type { Instance, InstanceSpec } from '../../../api/resources/instance.ts';
import type { Job, JobSpec } from '../../../api/resources/job.ts';
import type { Labels } from '../../../api/resources/metadata.ts';
import { type WarmPool, warmPoolLabel } from '../../../api/resources/warm-pool.ts';
import { isRecord } from '../../../base/is-record.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { claimable, guestsOf } from '../../warm-pools/guests.ts';
import { counted } from '../warm-pools/claim.ts';
import { attemptSpec } from './attempt.ts';

/** Throws `InvalidRequest` naming the field. */
export function poolOfJob(snapshot: Snapshot, project: string, { warmPool = '' }: JobSpec): Entry<WarmPool> {
  const pool = snapshot.get('warmPool', keys.warmPool(project, warmPool));
  const refuse = (message: string): never => {
    throw new ApiError('InvalidRequest', `spec.warmPool: ${message}`, { field: 'spec.warmPool' });
  };
  if (!pool) return refuse(`there is no warm pool "${warmPool}"; "berth warm-pool ls" shows them`);
  if (!pool.value.spec.forJobs) return refuse(`warm pool "${warmPool}" is not for jobs; create one with --for-jobs`);
  return pool;
}

/** Throws `InvalidRequest` for what the guests of the pool have already. */
export function assertOfPool(spec: JobSpec, { metadata, spec: { template } }: WarmPool): void {
  const fields = ['size', 'cpus', 'memoryMiB', 'diskGiB', 'driver', 'imageCredentials'] as const;
  const given =
    fields.find((field) => spec[field] !== undefined) ??
    (spec.sshKeys.length > 0 ? 'sshKeys' : undefined) ??
    (Object.values(spec.placement ?? {}).some(isGiven) ? 'placement' : undefined);
  if (given !== undefined)
    throw new ApiError(
      'InvalidRequest',
      `spec.${given}: the guests of warm pool "${metadata.name}" have theirs already; leave it out`,
      { field: `spec.${given}` },
    );
  const word = spec.image ?? spec.label;
  if (word !== undefined && word !== template.spec.image)
    throw new ApiError(
      'InvalidRequest',
      `the guests of warm pool "${metadata.name}" have image "${template.spec.image}", and not "${word}"; leave it out`,
      { field: spec.image === undefined ? 'spec.label' : 'spec.image' },
    );
}

/** The schema fills in empty maps. */
function isGiven(value: unknown): boolean {
  return isRecord(value) ? Object.keys(value).length > 0 : value !== undefined;
}

/** A new instance for the job. */
export function poolAttemptSpec(
  spec: JobSpec,
  { spec: { template } }: WarmPool,
  avoidHosts: readonly string[] = [],
): InstanceSpec {
  const own = attemptSpec(spec, avoidHosts);
  const { userData, stopGraceMs, restartPolicy, run, priority } = own;
  return {
    ...template.spec,
    ...{ userData, stopGraceMs, restartPolicy },
    ...(run === undefined ? {} : { run }),
    ...(priority === undefined ? {} : { priority }),
    placement: { ...template.spec.placement, ...(avoidHosts.length === 0 ? {} : { avoidHosts: [...avoidHosts] }) },
  };
}

/** Characters of a program that is sent over a port to a shell. A larger one is brought on the disk of a new guest. */
const programLengthMax = 8_000;

function isTooLarge({ script = '', env, artifacts }: JobSpec): boolean {
  return script.length + JSON.stringify([env, artifacts]).length > programLengthMax;
}

interface Claimed {
  readonly changes: readonly Change[];
  readonly instance: Instance;
}

/** Undefined: no guest is ready. */
export function claimForJob(
  snapshot: Snapshot,
  pool: Entry<WarmPool>,
  { metadata, spec }: Job,
  labels: Labels,
  ctx: Context,
): Claimed | undefined {
  const found = claimable(guestsOf(snapshot, pool.value, ctx.nowMs));
  const { run, stopGraceMs, restartPolicy } = attemptSpec(spec);
  if (found === undefined || run === undefined || isTooLarge(spec)) return undefined;
  const { key, revision, value } = found.entry;
  const { warmPool: _, ...status } = value.status;
  const { name } = pool.value.metadata;
  const instance: Instance = {
    ...value,
    metadata: {
      ...value.metadata,
      labels: { ...value.metadata.labels, ...labels, [warmPoolLabel]: name },
      generation: value.metadata.generation + 1,
    },
    spec: { ...value.spec, stopGraceMs, restartPolicy, powerState: 'running', run: { ...run, warm: 'claimed' } },
    status: { ...status, claimed: { pool: name, atMs: ctx.nowMs, warm: true } },
  };
  const message = `claimed from warm pool "${name}" for job "${metadata.name}"`;
  return {
    changes: [
      { key, ifRevision: revision, value: instance },
      counted(pool, true),
      eventChange(instance, { reason: 'Claimed', message }, ctx),
    ],
    instance,
  };
}
