// The API as the pages call it: by the cookie of the session, at the server that the page came from.

import { serversHeader } from '../../src/api/client/servers.ts';
import { createUserClient, type FetchLike, type FetchResponse } from '../../src/api/client/user-client.ts';

const pageFetch: FetchLike = async (url, { method, headers, body, signal }) => {
  const response = await fetch(url, {
    method,
    headers,
    ...(body === undefined ? {} : { body }),
    ...(signal === undefined ? {} : { signal }),
    credentials: 'same-origin',
    cache: 'no-store',
  });
  return new PageResponse(response);
};

/** Not every browser can iterate over a stream. */
class PageResponse implements FetchResponse {
  readonly status: number;
  readonly headers: FetchResponse['headers'];
  readonly #response: Response;

  constructor(response: Response) {
    this.status = response.status;
    // Other servers of the fleet are other origins: the page stays with its own.
    this.headers = { get: (name) => (name === serversHeader ? null : response.headers.get(name)) };
    this.#response = response;
  }

  get body(): AsyncIterable<Uint8Array> | null {
    const { body } = this.#response;
    return body && piecesOf(body);
  }

  text(): Promise<string> {
    return this.#response.text();
  }
}

async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // it is over, however it ended
  }
}

export const client = createUserClient({ fetch: pageFetch, url: location.origin });
