// The copy of a refused message in the dead-letter queue: same bytes and properties, with the reason in its headers. Its
// message_id is derived from the body, so that two copies that a crash left are known as one.

import { createHash } from 'node:crypto';
import type { BrokerMessage } from './broker.ts';
import type { Outgoing } from './confirmed-publisher.ts';
import { bytesOf, contentTypeOf } from './message-bytes.ts';

export const deadLetterHeaders = {
  reason: 'x-berth-reason',
  message: 'x-berth-message',
  exchange: 'x-berth-exchange',
  messageId: 'x-berth-message-id',
} as const;

/** Header values are text of any length, but people read this one. */
const messageCharactersMax = 1_024;

export function deadLetterId(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('hex').slice(0, 32);
}

export function deadLetterOf(
  message: BrokerMessage,
  why: { readonly reason: string; readonly message: string },
  deadLetterExchange: string,
): Outgoing {
  const { correlationId, replyTo, type, appId, priority, contentEncoding, headers, exchange, routingKey } = message;
  const contentType = contentTypeOf(message);
  return {
    exchange: deadLetterExchange,
    routingKey,
    messageId: deadLetterId(bytesOf(message)),
    ...defined({ correlationId, replyTo, type, appId, priority, contentEncoding, contentType }),
    headers: {
      ...headers,
      [deadLetterHeaders.reason]: why.reason,
      [deadLetterHeaders.message]: why.message.slice(0, messageCharactersMax),
      [deadLetterHeaders.exchange]: exchange,
      ...(message.messageId === undefined ? {} : { [deadLetterHeaders.messageId]: message.messageId }),
    },
  };
}

function defined<T extends object>(fields: T): Partial<T> {
  const kept = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(kept) as Partial<T>; // fromEntries loses the key types
}
