// Migration: how far the move of an instance to another host is. Part of the status of the instance.

import { type Static, Type } from 'typebox';
import { Name } from './metadata.ts';

const closed = { additionalProperties: false } as const;

/** 1 KiB/s to 1 TiB/s. */
export const bandwidthBounds = { minimum: 1024, maximum: 2 ** 40 } as const;

/**
 * Preparing: the target fetches the image while the guest runs. Copying: the guest is stopped, and its files are copied. Finishing: it belongs
 * to the target; the source removes what it has. Failed and Cancelled: it stays on the source.
 */
const migrationSteps = ['Preparing', 'Copying', 'Finishing', 'Done', 'Failed', 'Cancelled'] as const;

/** What the agent of the target says of the files that it receives. */
export const IncomingSeen = Type.Object(
  {
    id: Type.String({ maxLength: 64, description: 'of the migration' }),
    state: Type.Enum(['preparing', 'prepared', 'copying', 'received', 'failed']),
    bytes: Type.Integer({ minimum: 0, description: 'copied and checked' }),
    ofBytes: Type.Optional(Type.Integer({ minimum: 0 })),
    message: Type.Optional(Type.String({ maxLength: 1024 })),
  },
  closed,
);
export type IncomingSeen = Static<typeof IncomingSeen>;

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
    seen: Type.Optional(Type.Unsafe<IncomingSeen>({ ...IncomingSeen, description: 'as the target says' })),
    /** Of the newest accepted report of the target. */
    report: Type.Optional(Type.Object({ epoch: Type.Integer(), sequence: Type.Integer() }, closed)),
    message: Type.Optional(Type.String({ description: 'why it failed' })),
  },
  { ...closed, description: 'its last move to another host' },
);
export type Migration = Static<typeof Migration>;
