// Job template: the spec of jobs that are created on request or at times. `spec` is its owner's request; `status` is
// written by the operations on it and by controllers/jobs/job-template.ts.

import { type Static, Type } from 'typebox';
import { CronTimes, TimeZoneOrUtc } from '../times/schedule-fields.ts';
import { JobSpec } from './job.ts';
import { Condition, Labels, Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

export const jobParametersMax = 32;

export const JobSchedule = Type.Object(
  {
    timeZone: TimeZoneOrUtc,
    cron: CronTimes(),
    overlap: Type.Enum(['skip', 'allow', 'replace'], {
      default: 'skip',
      description:
        'while the previous scheduled job has not ended. skip: create none; allow: create another; replace: cancel the previous one',
    }),
    catchUpMs: Type.Integer({
      default: 600_000,
      minimum: 60_000,
      maximum: 86_400_000,
      description: 'the newest time that was missed is made up when it was missed by less than this',
    }),
  },
  closed,
);
export type JobSchedule = Static<typeof JobSchedule>;

export const JobParameter = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$',
      description: 'of the environment variable that has its value',
    }),
    default: Type.Optional(
      Type.String({ pattern: '^[^\\u0000]*$', maxLength: 8_192, description: 'absent: each request gives a value' }),
    ),
    description: Type.Optional(Type.String({ maxLength: 256 })),
  },
  closed,
);
export type JobParameter = Static<typeof JobParameter>;

export const JobTemplateSpec = Type.Object(
  {
    template: Type.Object(
      {
        labels: Type.Unsafe<Labels>({ ...Labels, description: 'of its jobs, besides the label berth/job-template' }),
        spec: Type.Unsafe<JobSpec>({ ...JobSpec, description: 'as of a job' }),
      },
      closed,
    ),
    parameters: Type.Array(JobParameter, {
      default: [],
      maxItems: jobParametersMax,
      description: 'what requests may set',
    }),
    schedule: Type.Optional(
      Type.Unsafe<JobSchedule>({ ...JobSchedule, description: 'when jobs are created; default: on request only' }),
    ),
    paused: Type.Boolean({ default: false, description: 'create no jobs by the schedule' }),
  },
  closed,
);
export type JobTemplateSpec = Static<typeof JobTemplateSpec>;

export const JobTemplateStatus = Type.Object(
  {
    jobs: Type.Integer({ minimum: 0, description: 'created so far, on request and by the schedule' }),
    last: Type.Optional(
      Type.Object(
        { job: Type.String(), id: Type.String(), atMs: Type.Integer({ description: 'for which time' }) },
        { ...closed, description: 'newest job of the schedule' },
      ),
    ),
    nextMs: Type.Optional(Type.Integer({ description: 'when the next job is created' })),
    handled: Type.Optional(
      Type.Integer({ description: 'number of the newest time of the schedule that was decided on' }),
    ),
    conditions: Type.Array(Condition),
  },
  closed,
);
export type JobTemplateStatus = Static<typeof JobTemplateStatus>;

export type JobTemplate = Resource<'jobTemplate', JobTemplateSpec, JobTemplateStatus>;

export const jobTemplateDefinition = {
  kind: 'jobTemplate',
  plural: 'job-templates',
  idPrefix: 'jobt',
  scope: 'project',
  description: 'The spec of jobs that are created on request or at times.',
  name: Type.String({ ...Name, maxLength: 48 }),
  spec: JobTemplateSpec,
  status: JobTemplateStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;

/** The label of its jobs with its name. */
export const jobTemplateLabel = 'berth/job-template';
