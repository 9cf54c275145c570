// The library parses bodies whose content type is JSON or plain text: equal keys, the true size and bytes that are not
// UTF-8 are lost. Here the type is taken out of the header frame before it looks, so that every body is a Buffer.

import type { Channel } from 'rabbitmq-client';
import { assert } from '../../../base/assert.ts';

interface HeaderFrame {
  readonly fields: { readonly contentType?: string; readonly givenContentType?: string };
}

/** A method that the library does not declare; `bytesOf` and the tests hold it to the installed version. */
const headerMethod = '_onHeader';

/** Of all messages that the channel receives from now on. */
export function keepBytes(channel: Channel): void {
  const onHeader: unknown = Reflect.get(channel, headerMethod);
  assert(typeof onHeader === 'function', 'a channel of rabbitmq-client reads header frames');
  const read = (frame: HeaderFrame): void => {
    const { contentType, ...fields } = frame.fields;
    const given = contentType === undefined ? {} : { givenContentType: contentType };
    Reflect.apply(onHeader, channel, [{ ...frame, fields: { ...fields, ...given } }]);
  };
  Reflect.set(channel, headerMethod, read);
}

/** Throws `AssertionError` when the library parsed it nevertheless. */
export function bytesOf({ body }: { readonly body: unknown }): Buffer {
  assert(Buffer.isBuffer(body), 'the body of a message is a Buffer');
  return body;
}

/** The content type that the publisher gave. */
export function contentTypeOf(message: object): string | undefined {
  return 'givenContentType' in message && typeof message.givenContentType === 'string'
    ? message.givenContentType
    : undefined;
}
