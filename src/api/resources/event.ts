// Event: something that happened to a resource, for users. Written beside the change that it describes; kept for a
// limited time.

import { type Static, Type } from 'typebox';
import { DottedName, type Resource, type ResourceDefinition } from './metadata.ts';

export const EventSpec = Type.Object(
  {
    subject: Type.Object(
      { kind: Type.String(), id: Type.String(), name: Type.String(), project: Type.String() },
      { additionalProperties: false },
    ),
    type: Type.Enum(['Normal', 'Warning']),
    reason: Type.String({ description: 'CamelCase code for programs' }),
    message: Type.String({ description: 'a sentence for people' }),
    host: Type.Optional(Type.String()),
  },
  { additionalProperties: false },
);
export type EventSpec = Static<typeof EventSpec>;

export type Event = Resource<'event', EventSpec, Record<string, never>>;

export const eventDefinition = {
  kind: 'event',
  plural: 'events',
  idPrefix: 'evt',
  scope: 'project',
  description: 'Something that happened to a resource.',
  name: DottedName,
  spec: EventSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: [],
} as const satisfies ResourceDefinition;
