// The body of a route that takes bytes.

import { ApiError } from '../../../api/errors.ts';

/** Throws `UnsupportedMediaType` for any other body. */
export function bytesOf(body: unknown): AsyncIterable<Uint8Array> {
  if (isBytes(body)) return whileItLasts(body);
  throw new ApiError('UnsupportedMediaType', 'the body must be the bytes of the file, as application/octet-stream');
}

/** A client that goes away is no fault of ours. */
async function* whileItLasts(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (cause) {
    throw new ApiError('InvalidRequest', 'the connection broke; continue with what is missing', {
      field: 'content',
      cause,
    });
  }
}

function isBytes(body: unknown): body is AsyncIterable<Uint8Array> {
  return typeof body === 'object' && body !== null && Symbol.asyncIterator in body;
}
