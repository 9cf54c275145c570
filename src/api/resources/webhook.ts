// Webhook: where events of a project are sent. The secrets that sign them are values of a `secret` of the project.

import { type Static, Type } from 'typebox';
import { Labels, Name, type Resource, type ResourceDefinition } from './metadata.ts';
import { SecretReference } from './secret.ts';

const closed = { additionalProperties: false } as const;

export const WebhookSpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    url: Type.String({
      pattern: '^https?://[^\\s@#]+$',
      maxLength: 2048,
      description: 'http only where the server permits the address',
    }),
    events: Type.Array(
      Type.String({
        pattern: '^(\\*|berth\\.v1\\.([a-zA-Z]+\\.)*([a-zA-Z]+|\\*))$',
        maxLength: 128,
        description: 'a type, berth.v1.instance.* or *',
      }),
      { default: ['*'], minItems: 1, maxItems: 64, uniqueItems: true },
    ),
    labels: Type.Optional(
      Type.Unsafe<Labels>({ ...Labels, description: 'only events about resources that have all of these labels' }),
    ),
    secrets: Type.Array(SecretReference, {
      minItems: 1,
      maxItems: 4,
      description: 'each signs: with the new and the old one, receivers can change over at any time',
    }),
    allProjects: Type.Boolean({
      default: false,
      description: 'events of the whole fleet; who creates it must be permitted to read them',
    }),
    paused: Type.Boolean({ default: false, description: 'events wait as long as they are kept' }),
  },
  closed,
);
export type WebhookSpec = Static<typeof WebhookSpec>;

export const WebhookStatus = Type.Object(
  {
    disabled: Type.Optional(
      Type.Object(
        { atMs: Type.Integer(), reason: Type.String() },
        { ...closed, description: 'the receiver said that it is gone, or failed for days; a replace enables it again' },
      ),
    ),
    asked: Type.Array(
      Type.Object({ number: Type.Integer({ minimum: 1 }), event: Type.String({ maxLength: 64 }) }, closed),
      { description: 'deliveries that people asked for again, the newest last' },
    ),
  },
  closed,
);
export type WebhookStatus = Static<typeof WebhookStatus>;

export type Webhook = Resource<'webhook', WebhookSpec, WebhookStatus>;

export const webhookDefinition = {
  kind: 'webhook',
  plural: 'webhooks',
  idPrefix: 'hook',
  scope: 'project',
  description: 'Where events of a project are sent.',
  name: Name,
  spec: WebhookSpec,
  status: WebhookStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;
