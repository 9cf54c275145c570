// The servers of a store, as they announce themselves: `GET /v1/servers`.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const ServerList = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          url: Type.Optional(
            Type.String({
              description: 'the address that it announces; absent: none, so other machines do not reach it',
            }),
          ),
          version: Type.Optional(Type.String({ description: 'absent: of an earlier version, which does not tell' })),
          recordsVersion: Type.Optional(
            Type.Integer({ description: 'the newest form of records that it knows; absent: it does not tell' }),
          ),
          announcedAtMs: Type.Integer({ description: 'it may have ended since' }),
        },
        closed,
      ),
      { description: 'servers that run, or have ended without notice in the last week' },
    ),
    leader: Type.Optional(Type.String({ description: 'the name of the server that leads' })),
    recordsVersion: Type.Integer({
      description: 'the form of records that the store may contain: servers that do not know it write nothing',
    }),
  },
  closed,
);
export type ServerList = Static<typeof ServerList>;
