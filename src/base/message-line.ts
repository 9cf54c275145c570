// Messages over a WebSocket, in order, read and written only as fast as the other end takes them. Knows nothing of what they say.

import type { Duplex } from 'node:stream';
import { createWebSocketStream, type WebSocket } from 'ws';
import { drained } from './drained.ts';

export interface MessageLine {
  /** What the other end says: bytes, or text. Ends when it is gone. To be read by one at a time. */
  messages(): AsyncIterable<Uint8Array | string>;
  /** Resolves when the line has room for more. Says nothing to one that is gone. */
  send(message: Uint8Array | string): Promise<void>;
  /** Ends it in good order; what was sent arrives. */
  end(): void;
  /** Aborts when it is over, whoever ended it. */
  readonly over: AbortSignal;
}

export function messageLine(socket: WebSocket): MessageLine {
  const line: Duplex = createWebSocketStream(socket, { readableObjectMode: true, decodeStrings: false });
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  line.on('error', leave);
  line.on('close', leave);
  socket.on('close', leave);
  return {
    async *messages() {
      try {
        for await (const message of line.iterator({ destroyOnReturn: false }))
          yield typeof message === 'string' || message instanceof Uint8Array ? message : String(message);
      } catch (error) {
        if (!gone.signal.aborted) throw error; // a line that broke is one that ended
      }
    },
    async send(message) {
      if (gone.signal.aborted || line.writableEnded) return;
      if (!line.write(message)) await drained(line);
    },
    end() {
      if (!line.writableEnded) line.end();
      line.resume(); // the other end's part of the good-bye is behind what it said before
    },
    over: gone.signal,
  };
}
