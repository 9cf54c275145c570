// The schemas of requests and responses for each kind of resource, built from the registry of resources.

import { type TSchema, Type } from 'typebox';
import { Explanation } from '../explanation.ts';
import { Effects } from '../plans/effects.ts';
import { RolloutPlan } from '../plans/rollout-plan.ts';
import { type Kind, resourceDefinitions } from '../resources/index.ts';
import { Labels, Metadata, Name, type ResourceDefinition } from '../resources/metadata.ts';

const closed = { additionalProperties: false } as const;

export interface ResourceSchemas {
  /** In a response. */
  readonly resource: TSchema;
  readonly list: TSchema;
  /** One line of a watch. */
  readonly change: TSchema;
  /** In the response to a dry run. */
  readonly planned: TSchema;
  /** In the response to a dry run of a change or a deletion. */
  readonly affecting: TSchema;
  /** In a create or replace request. */
  readonly created: TSchema;
  readonly replaced: TSchema;
}

/** The metadata of a create request. The name of an instance or a job is optional: the server can generate it. */
export function createMetadata({ kind, name, scope }: ResourceDefinition) {
  const mayBeNameless = kind === 'instance' || kind === 'job';
  return Type.Object(
    {
      name: mayBeNameless ? Type.Optional(name) : name,
      labels: Labels,
      ...(scope === 'project' ? { project: Type.Optional(Name) } : {}),
    },
    { additionalProperties: false, ...(mayBeNameless ? { default: {} } : {}) },
  );
}

/** The metadata of a replace request. */
export const ReplaceMetadata = Type.Object(
  {
    labels: Labels,
    revision: Type.Optional(
      Type.Integer({ minimum: 1, description: 'apply the change only if the resource is still at this revision' }),
    ),
  },
  { additionalProperties: false, default: {} },
);

/** A deleted resource in a watch. */
export const Deleted = Type.Object({ metadata: Type.Object({ name: Type.String(), project: Type.String() }) });

export const resourceSchemas: Readonly<Record<Kind, ResourceSchemas>> = {
  instance: schemasOf(resourceDefinitions.instance),
  host: schemasOf(resourceDefinitions.host),
  project: schemasOf(resourceDefinitions.project),
  image: schemasOf(resourceDefinitions.image),
  size: schemasOf(resourceDefinitions.size),
  pool: schemasOf(resourceDefinitions.pool),
  group: schemasOf(resourceDefinitions.group),
  task: schemasOf(resourceDefinitions.task),
  workload: schemasOf(resourceDefinitions.workload),
  warmPool: schemasOf(resourceDefinitions.warmPool),
  spare: schemasOf(resourceDefinitions.spare),
  volume: schemasOf(resourceDefinitions.volume),
  job: schemasOf(resourceDefinitions.job),
  jobTemplate: schemasOf(resourceDefinitions.jobTemplate),
  token: schemasOf(resourceDefinitions.token),
  role: schemasOf(resourceDefinitions.role),
  binding: schemasOf(resourceDefinitions.binding),
  secret: schemasOf(resourceDefinitions.secret),
  webhook: schemasOf(resourceDefinitions.webhook),
  inventory: schemasOf(resourceDefinitions.inventory),
  event: schemasOf(resourceDefinitions.event),
};

function schemasOf(definition: ResourceDefinition): ResourceSchemas {
  const { kind, spec, status } = definition;
  const fields = { kind: Type.Literal(kind), schemaVersion: Type.Integer(), metadata: Metadata, spec, status };
  const resource = Type.Object(fields, { description: definition.description });
  return {
    resource,
    affecting: Type.Object(
      {
        ...fields,
        ...(kind === 'workload' ? { rollout: Type.Optional(RolloutPlan) } : { effects: Type.Optional(Effects) }),
      },
      { description: definition.description },
    ),
    planned: kind === 'instance' ? Type.Object({ ...fields, explanation: Type.Optional(Explanation) }) : resource,
    list: Type.Object({
      items: Type.Array(resource),
      revision: Type.Integer({ description: 'a watch from here misses nothing' }),
      epoch: Type.Optional(Type.String({ description: 'of the store; revisions of two epochs cannot be compared' })),
      continue: Type.Optional(Type.String({ description: 'for the next page; absent on the last' })),
      total: Type.Optional(Type.Integer({ description: 'with `offset`: the number of resources that match' })),
    }),
    change: Type.Object({
      type: Type.Enum(['put', 'delete', 'bookmark']),
      revision: Type.Integer(),
      resource: Type.Optional(Type.Union([resource, Deleted])),
    }),
    created: Type.Object({ metadata: createMetadata(definition), spec }, closed),
    replaced: Type.Object({ metadata: ReplaceMetadata, spec }, closed),
  };
}
