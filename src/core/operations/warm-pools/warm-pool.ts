// What users do with warm pools: create, replace, delete. controllers/workloads/warm-pool.ts creates and removes the guests; claim.ts gives them away.

import { ApiError } from '../../../api/errors.ts';
import { instancesClass } from '../../../api/resource-class.ts';
import { type WarmPool, type WarmPoolSpec, warmPoolLabel } from '../../../api/resources/warm-pool.ts';
import { equalJson } from '../../../base/equal-json.ts';
import { withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { assertSchedule } from '../../warm-pools/schedule.ts';
import { sameTemplate } from '../../workloads/template.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from '../create.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { assertNotDeleting, isDeleting, requestDeletion } from '../deletion.ts';
import { createInstance } from '../instance.ts';
import { assertKnownClasses } from '../known-classes.ts';
import { type DeleteInput, existing, replacedMetadata, type ReplaceInput } from '../replace.ts';
import { assertInstanceTemplate, freeCopyName } from '../workloads/workload-template.ts';

type WarmPoolInput = CreateInput<WarmPoolSpec>;

export function createWarmPool(snapshot: Snapshot, input: WarmPoolInput, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'warmPool');
  if (earlier) return earlier;
  assertWarmPool(snapshot, input, ctx);
  const key = keys.warmPool(input.project, input.name);
  assertFree(snapshot, 'warmPool', key, input.name);
  const metadata = newMetadata(ctx.newId('warm'), input, ctx);
  const accepted = {
    type: 'Ready',
    status: 'False',
    reason: 'Accepted',
    message: 'its guests are being created',
  } as const;
  const pool: WarmPool = {
    kind: 'warmPool',
    schemaVersion,
    metadata,
    spec: input.spec,
    status: {
      template: 1,
      ...{ wanted: input.spec.size, guests: 0, ready: 0, hits: 0, misses: 0 },
      conditions: withConditions([], [accepted], ctx.nowMs),
    },
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: pool },
        ...rememberCreate(input, 'warmPool', { key, id: metadata.id }, ctx),
        eventChange(pool, { reason: 'Accepted', message: 'accepted' }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

export function replaceWarmPool(snapshot: Snapshot, input: ReplaceInput<WarmPoolSpec>, ctx: Context): Decision {
  const key = keys.warmPool(input.project, input.name);
  const entry = existing(snapshot, 'warmPool', key, input.ifRevision);
  const { value } = entry;
  assertNotDeleting(value, 'warm pool');
  const specChanged = !equalJson(value.spec, input.spec);
  if (!specChanged && equalJson(value.metadata.labels, input.labels)) return alreadyDone(entry);
  if (specChanged) assertWarmPool(snapshot, input, ctx);
  const template = value.status.template + (sameTemplate(value.spec.template, input.spec.template) ? 0 : 1);
  const changed: WarmPool = {
    ...value,
    metadata: replacedMetadata(value.metadata, { labels: input.labels, specChanged }),
    spec: input.spec,
    status: { ...value.status, template },
  };
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: changed }] }, key, changed: true };
}

/** Its guests that are not claimed go first (controllers/workloads/warm-pool.ts); those that are claimed stay. */
export function deleteWarmPool(snapshot: Snapshot, input: DeleteInput, ctx: Context): Decision {
  const key = keys.warmPool(input.project, input.name);
  const entry = existing(snapshot, 'warmPool', key, input.ifRevision);
  if (isDeleting(entry.value)) return alreadyDone(entry);
  return requestDeletion(entry, 'its guests that wait are removed, then the pool', ctx);
}

/** Throws as the create of an instance does. */
export function newWarmGuest(snapshot: Snapshot, pool: WarmPool, ctx: Context): readonly Change[] {
  const { name, id } = pool.metadata;
  const { plan, key } = createInstance(snapshot, warmInput(snapshot, pool, ctx), ctx);
  return plan.changes.map((change) => {
    const { value } = change;
    if (change.key !== key || value?.kind !== 'instance') return change;
    const warmPool = { name, id, template: pool.status.template };
    return { ...change, value: { ...value, status: { ...value.status, warmPool } } };
  });
}

/** Its guest boots, and waits for the program of a job. */
const waitingRun = {
  ...{ env: {}, artifacts: [], timeLimitMs: 3_600_000, graceMs: 10_000, holdOnFailure: false },
  warm: 'waiting' as const,
};

/** An instance of the present template. */
export function warmInput(snapshot: Snapshot, { metadata, spec }: WarmPool, ctx: Context) {
  const { project, name } = metadata;
  const { template } = spec;
  return {
    project,
    name: freeCopyName(snapshot, { project, stem: name }, ctx),
    labels: { ...template.labels, [warmPoolLabel]: name },
    spec: spec.forJobs ? { ...template.spec, run: waitingRun } : template.spec,
  };
}

function assertWarmPool(snapshot: Snapshot, input: WarmPoolInput, ctx: Context): void {
  const { template, schedule, budget } = input.spec;
  const refuse = (field: string, message: string): never => {
    throw new ApiError('InvalidRequest', `spec.template.spec.${field}: ${message}`, {
      field: `spec.template.spec.${field}`,
    });
  };
  const { spec } = template;
  assertSchedule(schedule);
  assertKnownClasses(budget ?? {}, 'spec.budget', [instancesClass]);
  if (spec.powerState !== 'running') refuse('powerState', 'guests of a warm pool run; spec.state may be suspended');
  if (spec.gang !== undefined) refuse('gang', 'guests of a warm pool are no gang');
  if (spec.run !== undefined) refuse('run', 'a program that runs once is a job; a job may name a warm pool');
  if (spec.volumes !== undefined) refuse('volumes', 'a volume is attached to one instance; attach it after the claim');
  if (spec.placement.task !== undefined) refuse('placement.task', 'a task is taken over by one instance');
  for (const field of ['ttlMs', 'expiresAtMs', 'protected'] as const)
    if (spec[field] !== undefined) refuse(field, 'it counts from the claim; give it there');
  const asMade = input.spec.forJobs ? { ...template, spec: { ...spec, run: waitingRun } } : template;
  assertInstanceTemplate(snapshot, { project: input.project, name: input.name, template: asMade }, ctx);
}
