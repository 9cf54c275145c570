// How machines become hosts: the authority of the fleet, join tokens, and the certificates of hosts.

import { type Static, Type } from 'typebox';
import { Labels, Name } from './resources/metadata.ts';

/** For so long a certificate that has expired can be renewed with its key; after that its host joins again. */
export const renewableDays = 30;
export const renewableMs = renewableDays * 86_400_000;

const closed = { additionalProperties: false } as const;

export const Authorities = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          certificate: Type.String({ description: 'of the root, PEM' }),
          fingerprint: Type.String({ description: 'sha256: and 64 hex digits' }),
        },
        closed,
      ),
    ),
  },
  closed,
);
export type Authorities = Static<typeof Authorities>;

export const JoinTokenRequest = Type.Object(
  {
    pool: Type.Optional(Type.String({ ...Name, description: 'of the hosts that join with it' })),
    labels: Type.Optional(Type.Unsafe<Labels>({ ...Labels, description: 'of the hosts that join with it' })),
    uses: Type.Integer({ default: 1, minimum: 1, maximum: 10_000, description: 'how many hosts may join with it' }),
    expiresInMs: Type.Integer({ default: 3_600_000, minimum: 1_000, maximum: 366 * 86_400_000 }),
  },
  closed,
);
export type JoinTokenRequest = Static<typeof JoinTokenRequest>;

export const JoinToken = Type.Object(
  {
    id: Type.String(),
    pool: Type.Optional(Type.String()),
    labels: Type.Unsafe<Labels>({ type: 'object' }),
    createdAtMs: Type.Integer(),
    expiresAtMs: Type.Integer(),
    uses: Type.Integer({ description: 'how many hosts may join with it' }),
    usedBy: Type.Array(Type.String(), { description: 'names of the hosts that have joined with it' }),
  },
  closed,
);
export type JoinToken = Static<typeof JoinToken>;

export const NewJoinToken = Type.Object(
  { ...JoinToken.properties, token: Type.String({ description: 'shown only now' }) },
  closed,
);
export type NewJoinToken = Static<typeof NewJoinToken>;

export const JoinTokenList = Type.Object({ items: Type.Array(JoinToken) }, closed);
export type JoinTokenList = Static<typeof JoinTokenList>;

const Pem = Type.String({ minLength: 1, maxLength: 8192 });

export const JoinRequest = Type.Object(
  {
    token: Type.String({ minLength: 1, maxLength: 512 }),
    host: Name,
    request: Type.String({ ...Pem, description: 'PKCS #10, PEM; only its public key is used' }),
  },
  closed,
);
export type JoinRequest = Static<typeof JoinRequest>;

export const RenewRequest = Type.Object(
  {
    certificate: Type.String({ ...Pem, description: `the last one, PEM; expired for ${renewableDays} days at most` }),
    request: Type.String({ ...Pem, description: 'PKCS #10, PEM, with the same key' }),
    signature: Type.String({
      maxLength: 1024,
      description: 'of `request`, by the key of `certificate`: ECDSA with SHA-256 in DER, or Ed25519; base64',
    }),
  },
  closed,
);
export type RenewRequest = Static<typeof RenewRequest>;

export const IssuedCertificate = Type.Object(
  {
    host: Type.String(),
    hostId: Type.String(),
    certificate: Type.String({ description: 'with its issuer, PEM' }),
    authorities: Type.String({ description: 'the roots to trust, PEM' }),
    notAfterMs: Type.Integer(),
    serverTimeMs: Type.Integer({ description: 'to notice a wrong clock' }),
  },
  closed,
);
export type IssuedCertificate = Static<typeof IssuedCertificate>;
