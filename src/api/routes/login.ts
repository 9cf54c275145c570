// Routes for logins. They need no token: an ID token of a configured provider or CI system is exchanged for one.

import { type Static, Type } from 'typebox';
import { json, openBodyErrors, route } from './route.ts';

const closed = { additionalProperties: false } as const;
const text = (charactersMax: number, description: string) =>
  Type.String({ minLength: 1, maxLength: charactersMax, description });

const LoginProvider = Type.Object(
  {
    name: Type.String(),
    issuer: Type.String(),
    clientId: Type.String(),
    scopes: Type.Array(Type.String()),
    deviceCode: Type.Boolean({ description: 'logins by a code on another device are allowed' }),
    exchange: Type.Enum(['client', 'server'], {
      description: 'who exchanges a code for the ID token; server: the client has a secret, and accepts the code',
    }),
  },
  closed,
);

export type LoginProvider = Static<typeof LoginProvider>;

const LoggedIn = Type.Object(
  {
    token: Type.String({ description: 'shown once' }),
    name: Type.String({ description: 'of the token resource' }),
    expiresAtMs: Type.Integer(),
    kind: Type.Enum(['user', 'workload']),
    user: Type.String({ description: 'for display only' }),
  },
  closed,
);

export type LoggedIn = Static<typeof LoggedIn>;

const Code = Type.Object(
  {
    provider: text(63, 'its name in the configuration'),
    code: text(4_096, 'as the provider sent it to the redirect URI'),
    codeVerifier: Type.String({ pattern: '^[A-Za-z0-9._~-]{43,128}$', description: 'of PKCE (RFC 7636)' }),
    redirectUri: Type.String({
      pattern: '^http://(127\\.0\\.0\\.1|\\[::1\\]):[0-9]{1,5}/[a-z]*$',
      description: 'of the client, on its own machine',
    }),
  },
  { ...closed, description: 'of a provider whose client has a secret' },
);

const tag = 'logins';

const ownPath = Type.String({
  pattern: '^/ui(/[A-Za-z0-9._~%?&=:@+,-]+)*/?$',
  maxLength: 256,
  default: '/ui/',
  description: 'a path below /ui/: the page of the dashboard to show after the login',
});

const beginErrors = [...openBodyErrors, 'Forbidden', 'NotFound'] as const;
/** The login also creates a token or a session. */
const finishErrors = [...beginErrors, 'Unauthenticated', 'StoreFull'] as const;

/** A login in a browser that ends with a session: docs/login.md. */
export const browserLoginRoutes = {
  begin: route({
    id: 'beginBrowserLogin',
    tag,
    method: 'POST',
    path: '/v1/session/login',
    access: 'open',
    audit: 'no',
    summary:
      'Begin a login with a provider in this browser: returns the URL, and sets a cookie that binds the login to the browser',
    query: {},
    body: Type.Object({ provider: text(63, 'its name'), returnTo: ownPath }, closed),
    bodyBytesMax: 4_096,
    answers: { 200: json(Type.Object({ url: Type.String({ description: 'of the provider' }) }, closed)) },
    errors: beginErrors,
  }),
  finish: route({
    id: 'finishBrowserLogin',
    tag,
    method: 'POST',
    path: '/v1/session/login/finish',
    access: 'open',
    summary: 'Finish a login of this browser with the code of the provider: sets the cookie of a session',
    query: {},
    body: Type.Object(
      {
        code: text(4_096, 'as the provider sent it to the callback'),
        state: text(256, 'as the provider sent it back'),
        iss: Type.Optional(text(2_048, 'issuer, as the provider sent it (RFC 9207)')),
      },
      closed,
    ),
    bodyBytesMax: 16_384,
    answers: { 200: json(Type.Object({ expiresAtMs: Type.Integer(), returnTo: ownPath }, closed)) },
    errors: finishErrors,
  }),
} as const;

export const loginRoutes = {
  providers: route({
    id: 'listLoginProviders',
    tag,
    method: 'GET',
    path: '/v1/login',
    access: 'open',
    summary: 'The OpenID providers that people log in with',
    answers: { 200: json(Type.Object({ providers: Type.Array(LoginProvider) }, closed)) },
  }),
  login: route({
    id: 'logIn',
    tag,
    method: 'POST',
    path: '/v1/login',
    access: 'open',
    summary: 'Exchange the ID token of a person or of a CI job for a token, once',
    body: Type.Object(
      {
        idToken: Type.Optional(text(16_384, 'as the provider signed it')),
        code: Type.Optional(Code),
        nonce: Type.Optional(text(256, 'that the login had')),
      },
      closed,
    ),
    bodyDescription: 'idToken or code',
    bodyBytesMax: 32_768,
    answers: { 200: json(LoggedIn) },
    errors: finishErrors,
  }),
} as const;
