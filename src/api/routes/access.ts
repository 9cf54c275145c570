// Routes about access itself: tokens and shares, which show their text once, and what the caller may do.

import { type Static, Type } from 'typebox';
import { accessResources, guestVerbs, ShareVerb, VerbName } from '../access.ts';
import { Labels, Name } from '../resources/metadata.ts';
import { Share, TokenUser } from '../resources/token.ts';
import { queryParameters } from './parameters.ts';
import { resourceSchemas } from './resource-schemas.ts';
import { json, needs, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'access';

/** Ten years. */
const expiresInSecMax = 315_360_000;

const Lifetime = {
  expiresInSec: Type.Optional(Type.Integer({ minimum: 1, maximum: expiresInSecMax })),
  neverExpires: Type.Optional(Type.Boolean({ description: 'for fleet administrators only' })),
};

const TokenRequest = Type.Object(
  {
    metadata: Type.Object({ name: Name, labels: Labels }, closed),
    spec: Type.Object(
      {
        description: Type.String({ default: '', maxLength: 1024 }),
        role: Type.Optional(Type.String({ ...Name, description: 'absent: only what bindings give it' })),
        project: Type.Optional(Type.String({ ...Name, description: 'absent: the role is for the whole fleet' })),
        ...Lifetime,
      },
      { ...closed, default: {} },
    ),
  },
  closed,
);
export type TokenRequest = Static<typeof TokenRequest>;

const Extension = Type.Object(Lifetime, closed);
export type Extension = Static<typeof Extension>;

const ShareRequest = Type.Object(
  {
    name: Type.Optional(Type.String({ ...Name, description: 'of the token; absent: after the instance' })),
    description: Type.String({ default: '', maxLength: 1024 }),
    verbs: Type.Array(ShareVerb, {
      minItems: 1,
      maxItems: guestVerbs.length,
      uniqueItems: true,
      default: ['console', 'logs', 'forward'],
    }),
    expiresInSec: Type.Optional(
      Type.Integer({ minimum: 1, maximum: expiresInSecMax, description: 'absent: two hours' }),
    ),
  },
  closed,
);
export type ShareRequest = Partial<Static<typeof ShareRequest>>;

const Issued = Type.Object(
  { token: Type.String({ description: 'shown once' }), resource: resourceSchemas.token.resource },
  closed,
);

const GivenRole = Type.Object(
  {
    role: Type.String(),
    project: Type.Optional(Type.String({ description: 'absent: in the whole fleet' })),
    binding: Type.Optional(Type.String({ description: 'that gives it; absent: the token itself' })),
  },
  closed,
);
export type GivenRole = Static<typeof GivenRole>;

const WhoAmI = Type.Object(
  {
    kind: Type.Enum(['admin', 'token']),
    name: Type.Optional(Type.String({ description: 'of the token' })),
    tokenId: Type.Optional(Type.String()),
    user: Type.Optional(TokenUser),
    owner: Type.Optional(Type.String({ description: 'the token that made it, and limits what it permits' })),
    share: Type.Optional(Share),
    expiresAtMs: Type.Optional(Type.Integer({ description: 'absent: never' })),
    roles: Type.Array(GivenRole),
  },
  closed,
);
export type WhoAmI = Static<typeof WhoAmI>;

const CanIRequest = Type.Object(
  {
    verb: VerbName,
    resource: Type.Enum([...accessResources]),
    project: Type.Optional(Type.String({ ...Name, description: 'absent: in the whole fleet' })),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 128, description: 'of one object' })),
  },
  closed,
);
export type CanIRequest = Static<typeof CanIRequest>;

const CanI = Type.Object({ allowed: Type.Boolean(), reason: Type.Optional(Type.String()) }, closed);
export type CanI = Static<typeof CanI>;

export const accessRoutes = {
  createToken: route({
    id: 'createToken',
    tag,
    method: 'POST',
    path: '/v1/tokens',
    access: needs('token', 'issue-token'),
    summary: 'Create a token, which permits no more than its creator may do',
    query: {},
    body: TokenRequest,
    answers: { 201: json(Issued, 'created; the text is never shown again') },
    errors: ['AlreadyExists'],
  }),
  extendToken: route({
    id: 'extendToken',
    tag,
    method: 'POST',
    path: '/v1/tokens/:name/extend',
    access: needs('token', 'update', 'delete'),
    summary: 'Give a token or a share another end, counted from now',
    query: {},
    body: Extension,
    bodyOptional: true,
    answers: { 200: json(resourceSchemas.token.resource) },
    errors: ['NotFound', 'Conflict'],
  }),
  share: route({
    id: 'shareInstance',
    tag,
    method: 'POST',
    path: '/v1/instances/:name/shares',
    access: needs('instance', ...guestVerbs),
    summary: 'Create a token for one instance and some ways into it; it ends with the instance',
    query: { project: queryParameters.project },
    body: ShareRequest,
    bodyOptional: true,
    answers: { 201: json(Issued, 'created; the text is never shown again') },
    errors: ['NotFound', 'AlreadyExists', 'Conflict'],
  }),
  whoAmI: route({
    id: 'whoAmI',
    tag,
    method: 'GET',
    path: '/v1/whoami',
    access: 'self',
    summary: 'Who the caller is, by its token',
    query: {},
    answers: { 200: json(WhoAmI) },
  }),
  canI: route({
    id: 'canI',
    tag,
    method: 'POST',
    path: '/v1/can-i',
    access: 'self',
    audit: 'no',
    summary: 'Whether the caller may do something, and if not, why',
    query: {},
    body: CanIRequest,
    answers: { 200: json(CanI) },
  }),
  rotateAdminToken: route({
    id: 'rotateAdminToken',
    tag,
    method: 'POST',
    path: '/v1/admin-token/rotate',
    access: 'self', // only the admin token itself
    summary: 'Replace the admin token by one whose SHA-256 is given; the old one opens nothing from then on',
    query: {},
    body: Type.Object(
      { digest: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the new text, hexadecimal' }) },
      closed,
    ),
    answers: { 200: json(Type.Object({}, closed)) },
  }),
} as const;
