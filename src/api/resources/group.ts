// Group: a placement group, with rules that its instances follow towards each other.

import { type Static, Type } from 'typebox';
import { Name, type Resource, type ResourceDefinition } from './metadata.ts';
import { GroupRule, GroupSpread, MaxPerHost } from './placement-rules.ts';

export const GroupSpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    affinity: Type.Optional(GroupRule),
    antiAffinity: Type.Optional(GroupRule),
    spread: Type.Optional(GroupSpread),
    maxPerHost: Type.Optional(MaxPerHost),
  },
  { additionalProperties: false },
);
export type GroupSpec = Static<typeof GroupSpec>;

export type Group = Resource<'group', GroupSpec, Record<string, never>>;

export const groupDefinition = {
  kind: 'group',
  plural: 'groups',
  idPrefix: 'grp',
  scope: 'project',
  description:
    'A placement group: rules for placing its instances together or apart, applied when an instance is placed.',
  name: Name,
  spec: GroupSpec,
  status: Type.Object({}, { additionalProperties: false }),
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
