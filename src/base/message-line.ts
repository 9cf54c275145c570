// Messages over a WebSocket, in order, with back-pressure in both directions. It does not interpret them.

import type { Duplex } from 'node:stream';
import { createWebSocketStream, type WebSocket } from 'ws';
import { drained } from './drained.ts';

export interface MessageLine {
  /** Messages of the other end: bytes or text. Ends with the connection. Only one reader at a time. */
  messages(): AsyncIterable<Uint8Array | string>;
  /** Resolves when more can be sent. Does nothing after the connection has ended. */
  send(message: Uint8Array | string): Promise<void>;
  /** Closes the connection cleanly; messages already sent arrive. */
  end(): void;
  /** Aborts when the connection has ended, from either side. */
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
        if (!gone.signal.aborted) throw error; // a broken connection counts as ended
      }
    },
    async send(message) {
      if (gone.signal.aborted || line.writableEnded) return;
      if (!line.write(message)) await drained(line);
    },
    end() {
      if (!line.writableEnded) line.end();
      line.resume(); // the other end's close frame comes after its unread messages
    },
    over: gone.signal,
  };
}
