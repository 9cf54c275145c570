// Routes of a browser's session: a cookie stands for the token that began it. A page never keeps the token itself.

import { Type } from 'typebox';
import { json, openBodyErrors, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const tag = 'access';

const Session = Type.Object(
  { expiresAtMs: Type.Integer({ description: 'of the cookie; it ends with its token, if that is sooner' }) },
  closed,
);

export const sessionRoutes = {
  begin: route({
    id: 'beginSession',
    tag,
    method: 'POST',
    path: '/v1/session',
    access: 'self',
    audit: 'first',
    summary: 'Set a cookie that stands for the caller’s token, for the dashboard',
    query: {},
    answers: { 200: json(Session) },
  }),
  end: route({
    id: 'endSession',
    tag,
    method: 'DELETE',
    path: '/v1/session',
    access: 'open',
    audit: 'no',
    summary: 'Delete the cookie',
    query: {},
    answers: { 200: json(Type.Object({}, closed)) },
  }),
  link: route({
    id: 'createSessionLink',
    tag,
    method: 'POST',
    path: '/v1/session/links',
    access: 'self',
    audit: 'first',
    summary: 'Create a link that opens the dashboard as the caller, once, within ten minutes',
    query: {},
    answers: {
      200: json(
        Type.Object(
          {
            path: Type.String({ description: 'to be added to the URL of a server; its secret is after the #' }),
            expiresAtMs: Type.Integer(),
          },
          closed,
        ),
      ),
    },
  }),
  open: route({
    id: 'openSessionLink',
    tag,
    method: 'POST',
    path: '/v1/session/open',
    access: 'open',
    summary: 'Set the cookie by the secret of a link',
    query: {},
    body: Type.Object({ link: Type.String({ minLength: 1, maxLength: 1024 }) }, closed),
    bodyBytesMax: 4_096,
    answers: { 200: json(Session) },
    errors: [...openBodyErrors, 'Unauthenticated', 'StoreFull'],
  }),
} as const;
