// A message that made no job, as the API shows it.

import { type Static, Type } from 'typebox';

export const DeadLetter = Type.Object(
  {
    id: Type.String({ description: 'derived from the body: copies of one message are one dead letter' }),
    copies: Type.Integer({ minimum: 1 }),
    movedBy: Type.Enum(['berth', 'broker'], { description: 'who moved it: Berth with a reason, or the broker' }),
    reason: Type.String({
      description: 'a code: NotJson, UnknownLabel, RequestIdReused; of the broker: expired, rejected',
    }),
    message: Type.Optional(Type.String()),
    bytes: Type.Integer(),
    movedAtMs: Type.Optional(Type.Integer()),
    requestId: Type.Optional(Type.String({ description: 'as its body has it, not checked' })),
    replyTo: Type.Optional(Type.String()),
    correlationId: Type.Optional(Type.String()),
    body: Type.Optional(Type.String({ description: 'its first 64 KiB as text' })),
  },
  { additionalProperties: false },
);
export type DeadLetter = Static<typeof DeadLetter>;
