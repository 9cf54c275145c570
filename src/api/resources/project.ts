// Project: a tenant, and its quota. A project needs no record: without one it has weight 1 and no limits.

import { type Static, Type } from 'typebox';
import { Amounts, Name, type Resource, type ResourceDefinition } from './metadata.ts';

export const ProjectSpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    weight: Type.Number({
      default: 1,
      minimum: 0.01,
      maximum: 1000,
      description: 'its fair share of the fleet, relative to other projects',
    }),
    quota: Type.Optional(
      Type.Unsafe<Static<typeof Amounts>>({
        ...Amounts,
        description: 'most that its instances may request in total, by resource class; INSTANCES counts them',
      }),
    ),
    guarantee: Type.Optional(
      Type.Unsafe<Static<typeof Amounts>>({
        ...Amounts,
        description: 'by resource class: this much is never preempted for instances of a higher priority',
      }),
    ),
    priorityMax: Type.Optional(
      Type.Integer({
        minimum: -1000,
        maximum: 1000,
        description: 'the highest priority its instances may have; default 1000',
      }),
    ),
    pools: Type.Optional(
      Type.Array(Name, {
        minItems: 1,
        maxItems: 64,
        uniqueItems: true,
        description: 'its instances, jobs and tasks must name one of these pools; default: any pool, or none',
      }),
    ),
  },
  { additionalProperties: false },
);
export type ProjectSpec = Static<typeof ProjectSpec>;

export type Project = Resource<'project', ProjectSpec, Record<string, never>>;

export const projectDefinition = {
  kind: 'project',
  plural: 'projects',
  idPrefix: 'proj',
  scope: 'fleet',
  description: 'A tenant, with its weights and limits.',
  name: Name,
  spec: ProjectSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
