// Token: a credential for the API. Its text is shown once; the store keeps a hash of it, in a record of its own.

import { type Static, Type } from 'typebox';
import { ShareVerb } from '../access.ts';
import { Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

/** One instance and the ways into it that the token opens. */
export const Share = Type.Object(
  {
    instance: Name,
    instanceId: Type.String({ maxLength: 64 }),
    verbs: Type.Array(ShareVerb, { minItems: 1, maxItems: 8, uniqueItems: true }),
  },
  { ...closed, description: 'a token for one instance only; it ends with the instance' },
);
export type Share = Static<typeof Share>;

/** Who logged in, as the provider said at that time. */
export const TokenUser = Type.Object(
  {
    provider: Name,
    subject: Type.String({ maxLength: 255 }),
    name: Type.Optional(Type.String({ maxLength: 255, description: 'for display only' })),
    groups: Type.Array(Type.String({ maxLength: 255 }), { maxItems: 1000 }),
  },
  closed,
);
export type TokenUser = Static<typeof TokenUser>;

export const TokenSpec = Type.Object(
  {
    description: Type.String({ default: '', maxLength: 1024 }),
    role: Type.Optional(Type.String({ ...Name, description: 'absent: only what bindings give it' })),
    project: Type.Optional(Type.String({ ...Name, description: 'where the role applies; absent: in the whole fleet' })),
    share: Type.Optional(Share),
    user: Type.Optional(Type.Unsafe<TokenUser>({ ...TokenUser, description: 'of a login' })),
    owner: Type.Optional(
      Type.Object(
        { name: Type.String(), id: Type.String() },
        { ...closed, description: 'the token that made this one, which never permits more than its owner' },
      ),
    ),
    expiresAtMs: Type.Optional(Type.Integer({ minimum: 0, description: 'absent: it does not expire' })),
  },
  closed,
);
export type TokenSpec = Static<typeof TokenSpec>;

export const TokenStatus = Type.Object(
  {
    tokenId: Type.String({ description: 'the public part of its text, for logs' }),
    lastUsedAtMs: Type.Optional(Type.Integer({ description: 'within a minute' })),
  },
  closed,
);
export type TokenStatus = Static<typeof TokenStatus>;

export type Token = Resource<'token', TokenSpec, TokenStatus>;

export const tokenDefinition = {
  kind: 'token',
  plural: 'tokens',
  idPrefix: 'tok',
  scope: 'fleet',
  description: 'A credential for the API, without its secret.',
  name: Name,
  spec: TokenSpec,
  status: TokenStatus,
  verbs: ['delete'],
} as const satisfies ResourceDefinition;
