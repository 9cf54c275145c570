// What became of an event that a webhook was sent.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const WebhookDelivery = Type.Object(
  {
    event: Type.String({ description: 'its id, which is the id of the message too' }),
    type: Type.String(),
    subject: Type.String(),
    state: Type.Enum(['Delivered', 'Waiting', 'Parked'], {
      description: 'Waiting: it is tried again; Parked: it was tried for the last time',
    }),
    attempts: Type.Integer({ minimum: 0 }),
    lastAtMs: Type.Optional(Type.Integer({ description: 'of the last attempt' })),
    nextAtMs: Type.Optional(Type.Integer({ description: 'of the next attempt' })),
    status: Type.Optional(Type.Integer({ description: "of the receiver's answer" })),
    error: Type.Optional(Type.String({ maxLength: 256 })),
  },
  closed,
);
export type WebhookDelivery = Static<typeof WebhookDelivery>;
