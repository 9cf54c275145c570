// The certificate authority of the fleet, and the progress of its rotation.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const AuthorityHost = Type.Object(
  {
    host: Type.String(),
    state: Type.Enum(['new', 'old', 'token'], {
      description:
        'new: has a certificate of the issuing authority; old: has one of the old authority; token: uses a host token',
    }),
    notAfterMs: Type.Optional(Type.Integer({ description: 'end of validity of its certificate' })),
  },
  closed,
);
export type AuthorityHost = Static<typeof AuthorityHost>;

export const AuthorityStatus = Type.Object(
  {
    authorities: Type.Array(
      Type.Object(
        {
          fingerprint: Type.String({ description: 'sha256: and 64 hex digits' }),
          createdAtMs: Type.Integer(),
          notAfterMs: Type.Integer(),
          servers: Type.Boolean({ description: 'issues the certificates of servers' }),
          hosts: Type.Boolean({ description: 'issues the certificates of hosts' }),
        },
        closed,
      ),
      { description: 'all are trusted; the oldest first' },
    ),
    rotation: Type.Optional(
      Type.Object(
        {
          startedAtMs: Type.Integer(),
          finishAfterMs: Type.Integer({ description: 'earlier, dropping the old authority requires `force`' }),
        },
        closed,
      ),
    ),
    hosts: Type.Array(AuthorityHost),
  },
  closed,
);
export type AuthorityStatus = Static<typeof AuthorityStatus>;

const dayMs = 86_400_000;

export const RotationRequest = Type.Object(
  {
    overlapMs: Type.Integer({
      default: 7 * dayMs,
      minimum: 0,
      maximum: 366 * dayMs,
      description: 'minimum time for which both authorities are trusted, so that clients learn the new one',
    }),
  },
  closed,
);
export type RotationRequest = Static<typeof RotationRequest>;

export const FinishRotationRequest = Type.Object(
  {
    force: Type.Boolean({
      default: false,
      description:
        'even if hosts have not renewed, or the overlap is not over: these hosts must join again, and clients must pin the new fingerprint',
    }),
  },
  closed,
);
export type FinishRotationRequest = Static<typeof FinishRotationRequest>;

/** Header of answers: the first 16 hex digits of the fingerprint of each authority, for clients that pin them. */
export const authoritiesHeader = 'berth-authorities';
/** Header of answers to a host: `renew`, when it must renew its certificate before the usual time. */
export const certificateHeader = 'berth-certificate';
