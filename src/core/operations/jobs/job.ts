// What users, queue messages and webhooks do with jobs: create, cancel, retry, delete. controllers/jobs/job.ts runs them.

import { ApiError } from '../../../api/errors.ts';
import { isFinal, type Job, type JobSpec } from '../../../api/resources/job.ts';
import type { Context } from '../../state/context.ts';
import { eventChange } from '../../state/events.ts';
import { jobsOf } from '../../state/jobs.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { schemaVersion } from '../../state/upgrade.ts';
import { assertSecretsExist } from '../secret-references.ts';
import { assertAskable } from '../askable.ts';
import { assertFree, type CreateInput, earlierCreate, newMetadata, rememberCreate } from '../create.ts';
import { alreadyDone, type Decision } from '../decision.ts';
import { isDeleting, requestDeletion } from '../deletion.ts';
import { type DeleteInput, existing } from '../replace.ts';
import { attemptSpec, imageWordOf } from './attempt.ts';
import { assertOfPool, poolAttemptSpec, poolOfJob } from './claimed-attempt.ts';
import { assertRun } from './runnable.ts';

export interface JobInput extends CreateInput<JobSpec> {
  /** A job without a name is named after this; default: its label. */
  readonly stem?: string;
}

/** `input.name` may be empty: then a free name is derived. */
export function createJob(snapshot: Snapshot, given: JobInput, ctx: Context): Decision {
  const earlier = earlierCreate(snapshot, given, 'job');
  if (earlier) return earlier;
  const input = { ...given, spec: withImageOfPool(snapshot, given) };
  assertRunnable(snapshot, input);
  const name = input.name || freeName(snapshot, input.project, given.stem ?? imageWordOf(input.spec), ctx);
  const key = keys.job(input.project, name);
  assertFree(snapshot, 'job', key, name);
  const id = ctx.newId('job');
  const job: Job = {
    kind: 'job',
    schemaVersion,
    metadata: newMetadata(id, { ...input, name }, ctx),
    spec: input.spec,
    status: { phase: 'Queued', attempt: 0, attempts: [] },
  };
  return {
    plan: {
      changes: [
        { key, ifRevision: 0, value: job },
        ...supersede(snapshot, job, ctx),
        ...rememberCreate(given, 'job', { key, id }, ctx),
        eventChange(job, { reason: 'Accepted', message: 'waiting in the queue' }, ctx),
      ],
    },
    key,
    changed: true,
  };
}

/** Throws `InvalidRequest` naming the field where `createJob` would refuse it. */
export function assertJob(snapshot: Snapshot, input: CreateInput<JobSpec>): void {
  assertRunnable(snapshot, { ...input, spec: withImageOfPool(snapshot, input) });
}

/** Throws `InvalidRequest` naming the field. */
function withImageOfPool(snapshot: Snapshot, { project, spec }: CreateInput<JobSpec>): JobSpec {
  if (spec.warmPool === undefined) return spec;
  const { value } = poolOfJob(snapshot, project, spec);
  assertOfPool(spec, value);
  return spec.image === undefined && spec.label === undefined
    ? { ...spec, image: value.spec.template.spec.image }
    : spec;
}

/** Throws `InvalidRequest` naming the field. */
function assertRunnable(snapshot: Snapshot, { project, labels, spec }: CreateInput<JobSpec>): void {
  if (spec.script === undefined && spec.repo === undefined)
    throw new ApiError(
      'InvalidRequest',
      'a job needs a script, or a repository with one; set spec.script or spec.repo',
      {
        field: 'spec.script',
      },
    );
  if (spec.image !== undefined && spec.label !== undefined)
    throw new ApiError('InvalidRequest', 'a job has an image or a label, not both; remove one', {
      field: 'spec.label',
    });
  const word = imageWordOf(spec);
  const image = snapshot.imageByName(word)?.value;
  const field = spec.image === undefined ? 'spec.label' : 'spec.image';
  if (!image && spec.image === undefined && spec.label === undefined)
    throw new ApiError(
      'InvalidRequest',
      'this job names no label, and there is no default label; set spec.label, or default_label in the image map',
      { field },
    );
  assertSecretsExist(snapshot, project, spec);
  const attempt =
    spec.warmPool === undefined ? attemptSpec(spec) : poolAttemptSpec(spec, poolOfJob(snapshot, project, spec).value);
  try {
    assertAskable(snapshot, { project, labels, spec: attempt });
    assertRun(snapshot, attempt);
  } catch (error) {
    // The attempt's image is the job's label.
    if (error instanceof ApiError && error.field === 'spec.image')
      throw new ApiError(error.code, error.message, { field });
    throw error;
  }
}

function freeName(snapshot: Snapshot, project: string, word: string, ctx: Context): string {
  const stem = word.replaceAll('.', '-').slice(0, 40).replace(/-+$/, '');
  for (;;) {
    const name = `${stem}-${(36 ** 4 + ctx.prng.below(35 * 36 ** 4)).toString(36)}`;
    if (!snapshot.get('job', keys.job(project, name))) return name;
  }
}

/** Cancels the unfinished jobs of the project with the same key. */
function supersede(snapshot: Snapshot, job: Job, ctx: Context): Change[] {
  const { supersedes } = job.spec;
  if (supersedes === undefined) return [];
  const { project, name } = job.metadata;
  return [...jobsOf(snapshot).withKey(project, supersedes)].flatMap((key) => {
    const older = snapshot.get('job', key);
    if (!older || isFinal(older.value.status.phase)) return [];
    return cancelChanges(older, { reason: 'Superseded', message: `job "${name}" supersedes it` }, ctx);
  });
}

interface Why {
  readonly reason: string;
  readonly message: string;
}

/** Empty where it is being cancelled already. */
export function cancelChanges(entry: Entry<Job>, why: Why, ctx: Context): Change[] {
  const { value, key, revision } = entry;
  if (value.status.cancel) return [];
  return [
    {
      key,
      ifRevision: revision,
      value: { ...value, status: { ...value.status, cancel: { atMs: ctx.nowMs, ...why } } },
    },
    eventChange(value, { reason: why.reason, message: why.message }, ctx),
  ];
}

interface JobName {
  readonly project: string;
  readonly name: string;
}

/** Repeating it is harmless. Throws `Conflict` when the job has ended. */
export function cancelJob(snapshot: Snapshot, input: JobName, ctx: Context): Decision {
  const key = keys.job(input.project, input.name);
  const entry = existing(snapshot, 'job', key);
  const { phase, cancel } = entry.value.status;
  if (phase === 'Cancelled' || cancel) return alreadyDone(entry);
  if (isFinal(phase)) throw new ApiError('Conflict', `job "${input.name}" has ended already: ${phase}`);
  const changes = cancelChanges(entry, { reason: 'CancelRequested', message: 'cancelled on request' }, ctx);
  return { plan: { changes }, key, changed: true };
}

/** A new job with the spec of one that has ended. Throws `Conflict` while that one has not. */
export function retryJob(snapshot: Snapshot, input: JobName, ctx: Context): Decision {
  const { value } = existing(snapshot, 'job', keys.job(input.project, input.name));
  if (!isFinal(value.status.phase))
    throw new ApiError('Conflict', `job "${input.name}" has not ended: ${value.status.phase}; cancel it first`);
  // The message of the first job has its one result already.
  const { request: _request, ...spec } = value.spec;
  const stem = input.name.replace(/-r[0-9]+$/, '').slice(0, 58);
  let number = 2;
  while (snapshot.get('job', keys.job(input.project, `${stem}-r${number}`))) number += 1;
  const labels = { ...value.metadata.labels, [retryOfLabel]: input.name };
  return createJob(snapshot, { project: input.project, name: `${stem}-r${number}`, labels, spec }, ctx);
}

/** On a job made by `retryJob`: the name of the other. */
export const retryOfLabel = 'berth/retry-of';

/** A job that has not ended is cancelled first; its record goes when nothing of it is left. Repeating it is harmless. */
export function deleteJob(snapshot: Snapshot, input: DeleteInput, ctx: Context): Decision {
  const key = keys.job(input.project, input.name);
  const entry = existing(snapshot, 'job', key, input.ifRevision);
  const { value } = entry;
  if (isDeleting(value)) return alreadyDone(entry);
  const cancel = value.status.cancel ?? { atMs: ctx.nowMs, reason: 'DeletionRequested', message: 'deletion requested' };
  const deleting: Job = {
    ...value,
    status: isFinal(value.status.phase) ? value.status : { ...value.status, cancel },
  };
  return requestDeletion({ ...entry, value: deleting }, 'deletion requested', ctx);
}
