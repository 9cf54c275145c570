// Migration: how far the move of an instance to another host is. Part of the status of the instance.

import { type Static, Type } from 'typebox';
import { Name } from './metadata.ts';

const closed = { additionalProperties: false } as const;

/** 1 KiB/s to 1 TiB/s. */
export const bandwidthBounds = { minimum: 1024, maximum: 2 ** 40 } as const;

/** cold: the guest is stopped while its files are copied. live: it keeps running, and is paused for a moment at the end. */
export const moveKinds = ['cold', 'live'] as const;

/**
 * Preparing: the target fetches the image while the guest runs. Copying: the guest is stopped, and its files are copied. Finishing: it belongs
 * to the target; the source removes what it has. Failed and Cancelled: it stays on the source.
 */
const migrationSteps = ['Preparing', 'Copying', 'Finishing', 'Done', 'Failed', 'Cancelled'] as const;

/** Where the target of a move listens for its source. */
export const MoveAddress = Type.Object(
  {
    address: Type.String({ maxLength: 45 }),
    port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  },
  closed,
);
export type MoveAddress = Static<typeof MoveAddress>;

/** SHA-256 of a certificate, as `AB:CD:...`. */
export const Fingerprint = Type.String({ pattern: '^[0-9A-F]{2}(:[0-9A-F]{2}){31}$' });

/** Transport of the data: from host to host, or through the control plane. */
export const moveWays = ['direct', 'relayed'] as const;
export type MoveWay = (typeof moveWays)[number];

/** What the agent of the target says of the files that it receives. */
export const IncomingSeen = Type.Object(
  {
    id: Type.String({ maxLength: 64, description: 'of the migration' }),
    state: Type.Enum(['preparing', 'prepared', 'copying', 'received', 'failed']),
    bytes: Type.Integer({ minimum: 0, description: 'copied and checked' }),
    ofBytes: Type.Optional(Type.Integer({ minimum: 0 })),
    message: Type.Optional(Type.String({ maxLength: 1024 })),
    at: Type.Optional(Type.Unsafe<MoveAddress>({ ...MoveAddress, description: 'where it listens for the source' })),
    way: Type.Optional(
      Type.Enum([...moveWays], { description: 'transport: from host to host, or through the control plane' }),
    ),
  },
  closed,
);
export type IncomingSeen = Static<typeof IncomingSeen>;

/** What the agent of the target says of a guest that arrived live, once the guest runs there. */
export const MovedLive = Type.Object(
  {
    id: Type.String({ maxLength: 64, description: 'of the migration' }),
    stoodStillMs: Type.Integer({ minimum: 0, description: 'from its stop on the source until it ran on the target' }),
  },
  closed,
);
export type MovedLive = Static<typeof MovedLive>;

export const Migration = Type.Object(
  {
    id: Type.String(),
    step: Type.Enum([...migrationSteps]),
    from: Name,
    to: Name,
    fromIncarnation: Type.Integer({ description: 'of the guest on the source' }),
    incarnation: Type.Integer({ description: 'of the guest on the target; not used again' }),
    startedAtMs: Type.Integer(),
    endedAtMs: Type.Optional(Type.Integer()),
    bytesPerSecondMax: Type.Optional(Type.Integer({ ...bandwidthBounds })),
    kind: Type.Optional(Type.Enum([...moveKinds], { description: 'default: cold' })),
    direct: Type.Optional(
      Type.Object(
        { from: Fingerprint, to: Fingerprint },
        {
          ...closed,
          description: 'fingerprints of the certificates of both hosts, when they can connect to each other',
        },
      ),
    ),
    way: Type.Optional(Type.Enum([...moveWays], { description: 'the way that its bytes went' })),
    stoodStillMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          'of a live move: how long the guest ran nowhere, in milliseconds; absent: not over yet, or an agent restarted meanwhile',
      }),
    ),
    seen: Type.Optional(Type.Unsafe<IncomingSeen>({ ...IncomingSeen, description: 'as the target says' })),
    /** Of the newest accepted report of the target. */
    report: Type.Optional(Type.Object({ epoch: Type.Integer(), sequence: Type.Integer() }, closed)),
    message: Type.Optional(Type.String({ description: 'why it failed' })),
  },
  { ...closed, description: 'its last move to another host' },
);
export type Migration = Static<typeof Migration>;
