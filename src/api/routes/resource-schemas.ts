// What is sent and answered of each kind of resource, made from the registry of resources.

import { type TSchema, Type } from 'typebox';
import { Explanation } from '../explanation.ts';
import { type Kind, resourceDefinitions } from '../resources/index.ts';
import { Labels, Metadata, Name, type ResourceDefinition } from '../resources/metadata.ts';

const closed = { additionalProperties: false } as const;

export interface ResourceSchemas {
  /** As it is answered. */
  readonly resource: TSchema;
  readonly list: TSchema;
  /** One line of a watch. */
  readonly change: TSchema;
  /** As a dry run answers it. */
  readonly planned: TSchema;
  /** As a create and a replace send it. */
  readonly created: TSchema;
  readonly replaced: TSchema;
}

/** What a create says besides the spec. An instance may leave its name to the server. */
export function createMetadata({ kind, name, scope }: ResourceDefinition) {
  const mayBeNameless = kind === 'instance';
  return Type.Object(
    {
      name: mayBeNameless ? Type.Optional(name) : name,
      labels: Labels,
      ...(scope === 'project' ? { project: Type.Optional(Name) } : {}),
    },
    { additionalProperties: false, ...(mayBeNameless ? { default: {} } : {}) },
  );
}

/** What a replace says besides the spec. */
export const ReplaceMetadata = Type.Object(
  {
    labels: Labels,
    revision: Type.Optional(Type.Integer({ minimum: 1, description: 'change only what is still at this revision' })),
  },
  { additionalProperties: false, default: {} },
);

/** What a watch says of a resource that is gone. */
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
  volume: schemasOf(resourceDefinitions.volume),
  event: schemasOf(resourceDefinitions.event),
};

function schemasOf(definition: ResourceDefinition): ResourceSchemas {
  const { kind, spec, status } = definition;
  const fields = { kind: Type.Literal(kind), schemaVersion: Type.Integer(), metadata: Metadata, spec, status };
  const resource = Type.Object(fields, { description: definition.description });
  return {
    resource,
    planned: kind === 'instance' ? Type.Object({ ...fields, explanation: Type.Optional(Explanation) }) : resource,
    list: Type.Object({
      items: Type.Array(resource),
      revision: Type.Integer({ description: 'a watch from here misses nothing' }),
      epoch: Type.Optional(Type.String({ description: 'of the store; revisions of two epochs cannot be compared' })),
      continue: Type.Optional(Type.String({ description: 'for the next page; absent on the last' })),
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
