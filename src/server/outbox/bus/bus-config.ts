// The brokers that get the events of the fleet, as they are configured. Credentials come from files, never from the URL.

import { type Static, Type } from 'typebox';
import { Name } from '../../../api/resources/metadata.ts';

const file = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 1024, description }));
const place = (description: string) =>
  Type.Optional(Type.String({ pattern: '^[A-Za-z0-9_.-]{1,128}$', maxLength: 128, description }));

export const BusConfig = Type.Object(
  {
    name: Type.Optional(
      Type.String({ ...Name, description: 'the progress is kept under this name; default: the kind' }),
    ),
    kind: Type.Enum(['nats', 'amqp', 'kafka']),
    url: Type.String({
      pattern: '^(nats|tls|amqps?|kafkas?)://[^\\s@?#]+$',
      maxLength: 1024,
      description: 'nats: or tls:, amqp: or amqps:, kafka: or kafkas: (TLS), without credentials',
    }),
    stream: place('of NATS JetStream; default: BERTH_EVENTS'),
    exchange: place('topic exchange of AMQP; default: berth'),
    topic: place('of Kafka; default: berth-events'),
    user: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: 'with passwordFile' })),
    passwordFile: file('file with the password as its only line'),
    tokenFile: file('NATS: file with a token, in place of user and password'),
    caFile: file('PEM file of the only authorities that are trusted'),
    certificateFile: file('PEM file of the certificate for the broker'),
    keyFile: file('PEM file of its private key'),
  },
  { additionalProperties: false },
);
export type BusConfig = Static<typeof BusConfig>;
