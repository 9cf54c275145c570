// What can be asked of a job template, besides what every resource has.

import { type Static, Type } from 'typebox';
import { jobParametersMax } from '../resources/job-template.ts';
import { Labels, Name } from '../resources/metadata.ts';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;

const TemplateRun = Type.Object(
  {
    metadata: Type.Object(
      {
        name: Type.Optional(
          Type.String({ ...Name, description: 'of the job; default: made from that of the template' }),
        ),
        labels: Labels,
      },
      { ...closed, default: {} },
    ),
    spec: Type.Object(
      {
        parameters: Type.Record(
          Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' }),
          Type.String({ pattern: '^[^\\u0000]*$', maxLength: 8_192 }),
          { default: {}, maxProperties: jobParametersMax, additionalProperties: false },
        ),
      },
      { ...closed, default: {} },
    ),
  },
  { ...closed, default: {} },
);
export type TemplateRun = Static<typeof TemplateRun>;

export const jobTemplateRoutes = {
  run: route({
    id: 'runJobTemplate',
    tag: 'job-templates',
    method: 'POST',
    path: '/v1/job-templates/:name/jobs',
    access: needs('job', 'create'),
    summary: 'Create a job of it, with values for its parameters',
    idempotencyKey: 'a repeated request with the same key returns the job of the first',
    query: { project: queryParameters.project },
    body: TemplateRun,
    answers: { 201: json(resourceSchemas.job.resource) },
    errors: ['NotFound', 'Conflict', 'AlreadyExists', 'QuotaExceeded', 'IdempotencyMismatch', 'StoreFull'],
  }),
};
