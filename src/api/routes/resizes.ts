// The route that resizes an instance: its plan, or the plan by its hash.

import { Type } from 'typebox';
import { ResizeOptions, ResizePlan } from '../plans/resize-plan.ts';
import { queryParameters } from './parameters.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;

export const ResizeRequest = Type.Object(
  {
    ...ResizeOptions.properties,
    apply: Type.Optional(
      Type.String({ minLength: 8, maxLength: 64, description: 'the hash of the plan to begin; absent: show the plan' }),
    ),
  },
  closed,
);

export const ResizeAnswer = Type.Object(
  { plan: ResizePlan, begun: Type.Boolean({ description: 'the plan is being carried out' }) },
  closed,
);

export const resizeRoutes = {
  resize: route({
    id: 'resizeInstance',
    tag: 'instances',
    method: 'POST',
    path: '/v1/instances/:name/resize',
    access: needs('instance', 'update'),
    audit: 'applied',
    summary:
      'Plan to give an instance other CPUs, memory or a larger disk, or do it: one that runs is stopped and starts again',
    query: { project: queryParameters.project },
    body: ResizeRequest,
    answers: { 200: json(ResizeAnswer) },
    errors: ['NotFound', 'Conflict', 'QuotaExceeded'],
  }),
} as const;
