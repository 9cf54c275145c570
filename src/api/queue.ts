// Queue: the pending instances in order, and why each waits.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const QueueItem = Type.Object(
  {
    position: Type.Integer({ minimum: 1 }),
    instance: Type.String(),
    project: Type.String(),
    priority: Type.Integer(),
    waitingMs: Type.Integer(),
    reason: Type.String({ description: 'CamelCase code for programs' }),
    message: Type.String({ description: 'why it waits, for people' }),
    gang: Type.Optional(Type.String()),
    expectedStartMs: Type.Optional(
      Type.Integer({
        description:
          'of an instance of a job: milliseconds since 1970, estimated from recent durations; absent: not known',
      }),
    ),
    nominatedHost: Type.Optional(Type.String({ description: 'a host is reserved for it' })),
  },
  closed,
);
export type QueueItem = Static<typeof QueueItem>;

export const QueueList = Type.Object(
  {
    waiting: Type.Integer({ description: 'how many wait in all, or of the project asked for' }),
    items: Type.Array(QueueItem),
    projects: Type.Array(
      Type.Object(
        {
          project: Type.String(),
          weight: Type.Number(),
          share: Type.Number({ description: 'the largest of any resource class of the fleet, by weight' }),
        },
        closed,
      ),
      { description: 'of those that wait' },
    ),
  },
  closed,
);
export type QueueList = Static<typeof QueueList>;
