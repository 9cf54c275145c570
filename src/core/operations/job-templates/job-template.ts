// What users do with job templates: create, replace, delete. run.ts creates their jobs on request, controllers/jobs/job-template.ts at times.

import { ApiError } from '../../../api/errors.ts';
import type { JobTemplate, JobTemplateSpec, JobTemplateStatus } from '../../../api/resources/job-template.ts';
import { equalJson } from '../../../base/equal-json.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { keys } from '../../state/keys.ts';
import { unchanged } from '../../state/plan.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { assertCron, assertTimeZone } from '../../times/assert-times.ts';
import { scheduleFrom } from '../../times/scheduled-times.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from '../create.ts';
import type { Decision } from '../decision.ts';
import { assertJob } from '../jobs/job.ts';
import { existing, replacedMetadata } from '../replace.ts';

type JobTemplateInput = CreateInput<JobTemplateSpec>;

export function createJobTemplate(snapshot: Snapshot, input: JobTemplateInput, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, input, 'jobTemplate');
  if (earlier) return earlier;
  assertJobTemplate(snapshot, input);
  const key = keys.jobTemplate(input.project, input.name);
  assertFree(snapshot, 'jobTemplate', key, input.name);
  const metadata = newMetadata(ctx.newId('jobt'), input, ctx);
  const template: JobTemplate = {
    kind: 'jobTemplate',
    schemaVersion,
    metadata,
    spec: input.spec,
    status: scheduledFrom(input.spec, { jobs: 0, conditions: [] }, ctx.nowMs),
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: template },
        ...rememberCreate(input, 'jobTemplate', { key, id: metadata.id }, ctx),
        eventChange(template, { reason: 'Accepted', message: 'accepted' }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

export function replaceJobTemplate(
  snapshot: Snapshot,
  input: JobTemplateInput & { readonly ifRevision?: number },
  ctx: Context,
): Decision {
  const key = keys.jobTemplate(input.project, input.name);
  const entry = existing(snapshot, 'jobTemplate', key, input.ifRevision);
  const { value } = entry;
  const specChanged = !equalJson(value.spec, input.spec);
  if (!specChanged && equalJson(value.metadata.labels, input.labels))
    return { plan: unchanged(entry), key, changed: false };
  if (specChanged) assertJobTemplate(snapshot, input);
  const timesChanged =
    value.spec.paused !== input.spec.paused || !equalJson(value.spec.schedule ?? null, input.spec.schedule ?? null);
  const changed: JobTemplate = {
    ...value,
    metadata: replacedMetadata(value.metadata, { labels: input.labels, specChanged }),
    spec: input.spec,
    status: timesChanged ? scheduledFrom(input.spec, value.status, ctx.nowMs) : value.status,
  };
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: changed }] }, key, changed: true };
}

/** Its jobs stay. */
export function deleteJobTemplate(
  snapshot: Snapshot,
  input: { readonly project: string; readonly name: string; readonly ifRevision?: number },
  ctx: Context,
): Decision {
  const key = keys.jobTemplate(input.project, input.name);
  const entry = existing(snapshot, 'jobTemplate', key, input.ifRevision);
  const deleted = eventChange(entry.value, { reason: 'Deleted', message: 'deleted; its jobs stay' }, ctx);
  return { plan: { changes: [{ key, ifRevision: entry.revision, value: null }, deleted] }, key, changed: true };
}

/** Times before now are not made up: only those that come while it stands as it is. */
export function scheduledFrom(
  { schedule, paused }: Pick<JobTemplateSpec, 'schedule' | 'paused'>,
  status: JobTemplateStatus,
  nowMs: number,
): JobTemplateStatus {
  const { handled: _handled, nextMs: _nextMs, ...rest } = status;
  if (schedule === undefined || paused) return rest;
  return { ...rest, ...scheduleFrom(schedule, nowMs) };
}

/** Throws `InvalidRequest` naming the field. */
function assertJobTemplate(snapshot: Snapshot, { project, labels, spec }: JobTemplateInput): void {
  const { template, parameters, schedule } = spec;
  const refuse = (field: string, message: string): never => {
    throw new ApiError('InvalidRequest', `${field}: ${message}`, { field });
  };
  for (const field of ['request', 'forge'] as const)
    if (template.spec[field] !== undefined)
      refuse(`spec.template.spec.${field}`, 'Berth sets it when a message or a webhook makes a job; leave it out');
  const names = parameters.map(({ name }) => name);
  for (const [i, { name, default: value }] of parameters.entries()) {
    if (names.indexOf(name) !== i) refuse(`spec.parameters[${i}].name`, `"${name}" is there twice`);
    if (typeof template.spec.env[name] === 'object')
      refuse(`spec.parameters[${i}].name`, `"${name}" has the value of a secret, which no request may set`);
    if (schedule !== undefined && value === undefined && template.spec.env[name] === undefined)
      refuse(`spec.parameters[${i}].default`, 'a schedule gives no values; set a default');
  }
  if (schedule !== undefined) {
    assertTimeZone(schedule.timeZone, 'spec.schedule.timeZone');
    assertCron(schedule.cron, 'spec.schedule.cron');
  }
  try {
    assertJob(snapshot, { project, name: '', labels: { ...labels, ...template.labels }, spec: template.spec });
  } catch (error) {
    if (!(error instanceof ApiError) || error.field === undefined) throw error;
    const field = error.field.replace(/^spec/, 'spec.template.spec');
    throw new ApiError(error.code, error.message.replaceAll(error.field, field), { field });
  }
}
