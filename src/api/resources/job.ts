// Job: a program that runs once, in a fresh instance for each attempt. `spec` is its owner's request; `status` is
// written by controllers/jobs/job.ts.

import { type Static, Type } from 'typebox';
import { InstanceSpec } from './instance.ts';
import { DottedName, Name, type Resource, type ResourceDefinition } from './metadata.ts';
import { runFields } from './run.ts';

const closed = { additionalProperties: false } as const;
const { image, size, cpus, memoryMiB, diskGiB, priority, placement, sshKeys, imageCredentials } =
  InstanceSpec.properties;
const { script, repo, env, artifacts } = runFields;

/** What may be retried: `infrastructure` is everything but the program itself; `failure` is a non-zero exit code. */
export const RetryCause = Type.Enum(['infrastructure', 'failure']);
export type RetryCause = Static<typeof RetryCause>;

export const JobRetries = Type.Object(
  {
    max: Type.Integer({ default: 2, minimum: 0, maximum: 10, description: 'attempts after the first' }),
    on: Type.Array(RetryCause, { default: ['infrastructure'], maxItems: 2, uniqueItems: true }),
  },
  closed,
);
export type JobRetries = Static<typeof JobRetries>;

/** The message that asked for a job, for its JobResult. */
export const JobRequestOrigin = Type.Object(
  {
    requestId: Type.String({ maxLength: 64 }),
    source: Type.String({ maxLength: 32 }),
    workflowJobId: Type.Optional(Type.String({ maxLength: 255 })),
    submittedAt: Type.String({ maxLength: 64, description: 'RFC 3339, as the message has it' }),
    replyTo: Type.Optional(Type.String({ maxLength: 255 })),
    correlationId: Type.Optional(Type.String({ maxLength: 255 })),
    digest: Type.String({ maxLength: 128, description: 'of the body, to tell a repetition from another request' }),
  },
  closed,
);
export type JobRequestOrigin = Static<typeof JobRequestOrigin>;

/** The webhook delivery that asked for a job, for its commit status. */
export const JobForgeOrigin = Type.Object(
  {
    hook: Name,
    forge: Type.Enum(['github', 'forgejo']),
    delivery: Type.String({ maxLength: 128 }),
    eventKey: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of what identifies the event' }),
    event: Type.Enum(['push', 'pull_request']),
    repository: Type.String({ maxLength: 255, description: 'OWNER/NAME' }),
    repositoryId: Type.String({ maxLength: 64 }),
    sha: Type.String({ pattern: '^([0-9a-f]{40}|[0-9a-f]{64})$' }),
    ref: Type.String({ maxLength: 1024, description: 'refs/heads/main, or refs/pull/7/head' }),
    before: Type.Optional(Type.String({ pattern: '^([0-9a-f]{40}|[0-9a-f]{64})$' })),
    context: Type.String({ maxLength: 255, description: 'of the commit status' }),
  },
  closed,
);
export type JobForgeOrigin = Static<typeof JobForgeOrigin>;

export const JobSpec = Type.Object(
  {
    image: Type.Optional(image),
    label: Type.Optional(
      Type.String({ ...DottedName, description: 'an alias or name of an image; default: the default label' }),
    ),
    size,
    cpus,
    memoryMiB,
    diskGiB,
    driver: Type.Optional(Name),
    warmPool: Type.Optional(
      Type.String({
        ...Name,
        description:
          'the first attempt claims a guest of this warm pool; when none is ready, and with a repository, an instance of its template is created',
      }),
    ),
    placement: Type.Optional(Type.Unsafe<Static<typeof placement>>({ ...placement })),
    script,
    repo,
    env,
    artifacts,
    sshKeys,
    imageCredentials,
    timeoutMs: Type.Integer({
      default: 3_600_000,
      minimum: 1_000,
      maximum: 7 * 24 * 3_600_000,
      description: 'the program is ended after this time',
    }),
    retries: Type.Unsafe<JobRetries>({ ...JobRetries, default: { max: 2, on: ['infrastructure'] } }),
    holdOnFailureMs: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 24 * 3_600_000,
      description: 'how long the instance of a failed attempt stays, for a look inside',
    }),
    priority,
    supersedes: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        pattern: '^[^\\u0000-\\u001f]+$',
        description: 'a newer job of the project with the same key cancels this one',
      }),
    ),
    request: Type.Optional(JobRequestOrigin),
    forge: Type.Optional(JobForgeOrigin),
  },
  closed,
);
export type JobSpec = Static<typeof JobSpec>;

/**
 * Queued → Placing → Booting → Running → Finishing → Succeeded, Failed, Cancelled or TimedOut; a retry goes back to
 * Queued. The last four are final: a job never leaves them.
 */
export const JobPhase = Type.Enum([
  'Queued',
  'Placing',
  'Booting',
  'Running',
  'Finishing',
  'Succeeded',
  'Failed',
  'Cancelled',
  'TimedOut',
]);
export type JobPhase = Static<typeof JobPhase>;

/** Whether a job has ended for good. */
export function isFinal(phase: JobPhase): boolean {
  return phase === 'Succeeded' || phase === 'Failed' || phase === 'Cancelled' || phase === 'TimedOut';
}

/** One instance that ran, or should have run, the program. */
export const JobAttempt = Type.Object(
  {
    number: Type.Integer({ minimum: 1 }),
    instance: Type.String({ description: 'its name' }),
    instanceId: Type.String(),
    host: Type.Optional(Type.String()),
    createdAtMs: Type.Integer(),
    startedAtMs: Type.Optional(Type.Integer({ description: 'of the program' })),
    endedAtMs: Type.Optional(Type.Integer()),
    outcome: Type.Optional(Type.Enum(['succeeded', 'failure', 'infrastructure', 'cancelled', 'timedOut'])),
    reason: Type.Optional(Type.String({ maxLength: 64 })),
    message: Type.Optional(Type.String({ maxLength: 1024 })),
    exitCode: Type.Optional(Type.Integer()),
    logBytes: Type.Optional(Type.Integer()),
    artifactsBytes: Type.Optional(Type.Integer()),
  },
  closed,
);
export type JobAttempt = Static<typeof JobAttempt>;

/** A copy of a JobResult on its way to one destination. unrouted: the broker has no queue for it. */
const Delivery = Type.Enum(['waiting', 'confirmed', 'unrouted', 'dropped']);

/** The JobResult of a job that a message asked for; written with the final phase and never changed but for its deliveries. */
export const JobResultDelivery = Type.Object(
  {
    messageId: Type.String({ maxLength: 128 }),
    body: Type.String({ maxLength: 16_384, description: 'the JSON to publish, byte by byte' }),
    exchange: Delivery,
    reply: Type.Optional(Delivery),
  },
  closed,
);
export type JobResultDelivery = Static<typeof JobResultDelivery>;

export const JobStatus = Type.Object(
  {
    phase: JobPhase,
    reason: Type.Optional(Type.String({ maxLength: 64 })),
    message: Type.Optional(Type.String({ maxLength: 1024 })),
    attempt: Type.Integer({ minimum: 0, description: 'the number of the current or last attempt; 0: none yet' }),
    instance: Type.Optional(Type.String({ description: 'name of the instance of this attempt' })),
    attempts: Type.Array(JobAttempt, { maxItems: 16 }),
    exitCode: Type.Optional(Type.Integer()),
    queuePosition: Type.Optional(
      Type.Integer({ minimum: 1, description: 'among the jobs that wait; as of this answer' }),
    ),
    estimatedStartMs: Type.Optional(
      Type.Integer({ description: 'milliseconds since 1970, from recent durations; absent: not known' }),
    ),
    startedAtMs: Type.Optional(Type.Integer()),
    endedAtMs: Type.Optional(Type.Integer()),
    logBytes: Type.Optional(Type.Integer()),
    heldUntilMs: Type.Optional(Type.Integer({ description: 'until when the instance of a failed job stays' })),
    cancel: Type.Optional(
      Type.Object(
        { atMs: Type.Integer(), reason: Type.String({ maxLength: 64 }), message: Type.String({ maxLength: 1024 }) },
        closed,
      ),
    ),
    retryAtMs: Type.Optional(Type.Integer()),
    result: Type.Optional(JobResultDelivery),
    commitStatus: Type.Optional(
      Type.Object(
        {
          state: Type.String({ maxLength: 32, description: 'the last that the forge accepted' }),
          final: Type.Boolean(),
          error: Type.Optional(Type.String({ maxLength: 512 })),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type JobStatus = Static<typeof JobStatus>;

export type Job = Resource<'job', JobSpec, JobStatus>;

export const jobDefinition = {
  kind: 'job',
  plural: 'jobs',
  idPrefix: 'job',
  scope: 'project',
  description: 'A program that runs once, in a fresh instance for each attempt.',
  name: Name,
  spec: JobSpec,
  status: JobStatus,
  verbs: ['create', 'delete'],
} as const satisfies ResourceDefinition;
