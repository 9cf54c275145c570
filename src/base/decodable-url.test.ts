import { expect, it } from 'vitest';
import { isDecodableUrl } from './decodable-url.ts';

it.each([
  ['amqp://mq', true],
  ['amqp://u:a%25b@mq:5672/%2f', true],
  ['amqp://u:a%zb@mq', false],
  ['amqp://u:100%@mq', false],
  ['amqp://mq/100%', false],
  ['mq', false],
])('%s: %s', (text, decodable) => expect(isDecodableUrl(text)).toBe(decodable));
