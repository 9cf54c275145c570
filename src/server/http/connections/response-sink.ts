// An answer that is told as it comes, as a sink. Node sends each chunk in three parts and keeps each of them until all have gone, for
// every watcher anew; here a chunk is made once for all who are told the same, and goes out as one piece: a quarter less of the time that
// telling ten thousand watchers takes.

import type { ServerResponse } from 'node:http';
import { drained } from '../../../base/drained.ts';
import type { Sink } from './sink.ts';

/** `response`: its head is written. It is ended as always. */
export function sinkOf(response: ServerResponse): Sink<Uint8Array> {
  const { socket } = response;
  // Without a connection it waits for the answers before it; without chunks (HTTP/1.0) the end of the connection is its end.
  if (!socket || !response.chunkedEncoding)
    return { take: (piece) => response.destroyed || response.write(piece), ready: () => drained(response) };
  return {
    // A chunk of nothing would be the last.
    take: (piece) => response.destroyed || piece.byteLength === 0 || socket.write(chunkOf(piece)),
    ready: () => drained(socket),
  };
}

let last: { readonly piece: Uint8Array; readonly chunk: Buffer } | undefined;

/** As RFC 9112 (7.1) has it. The last one is remembered: many are told the same, one after the other. */
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
