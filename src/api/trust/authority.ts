// The certificate authority of the fleet, and how far its rotation is.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const AuthorityHost = Type.Object(
  {
    host: Type.String(),
    state: Type.Enum(['new', 'old', 'token'], {
      description:
        'new: uses a certificate of the authority that issues; old: has not yet; token: uses a host token, and no certificate',
    }),
    notAfterMs: Type.Optional(Type.Integer({ description: 'until when its certificate is valid' })),
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
          servers: Type.Boolean({ description: 'servers show certificates of it' }),
          hosts: Type.Boolean({ description: 'hosts get certificates of it' }),
        },
        closed,
      ),
      { description: 'all are trusted; the oldest first' },
    ),
    rotation: Type.Optional(
      Type.Object(
        {
          startedAtMs: Type.Integer(),
          finishAfterMs: Type.Integer({ description: 'until then the old authority is dropped with `force` only' }),
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
      description: 'for how long both authorities are trusted at least, so that every client learns of the new one',
    }),
  },
  closed,
);
export type RotationRequest = Static<typeof RotationRequest>;

export const FinishRotationRequest = Type.Object(
  {
    force: Type.Boolean({
      default: false,
      description: 'hosts that have not renewed yet must join again, and clients must pin the new fingerprint',
    }),
  },
  closed,
);
export type FinishRotationRequest = Static<typeof FinishRotationRequest>;

/** Of answers: the first 16 hex digits of the fingerprint of each authority, for clients that pin them. */
export const authoritiesHeader = 'berth-authorities';
/** Of answers to a host: `renew`, when it needs a certificate before its own is due for renewal. */
export const certificateHeader = 'berth-certificate';
