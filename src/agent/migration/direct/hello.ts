// The first line on a direct connection: which move it is for. The rest belongs to HTTP/2, where the side that listens asks.

import type { Duplex } from 'node:stream';
import { type Clock, sleep } from '../../../base/clock.ts';

const pattern = /^berth-move\/1 (mig_[0-9a-z]{26})\n$/;
const lengthMax = 64;
const patienceMs = 10_000;

export const helloOf = (id: string): string => `berth-move/1 ${id}\n`;

/** Undefined: it is none, or does not come. */
export async function readHello(socket: Duplex, clock: Clock): Promise<string | undefined> {
  const limit = new AbortController();
  const bytes: number[] = [];
  const read = (async () => {
    for (;;) {
      // Byte by byte, so that nothing of what follows is taken.
      const next: unknown = socket.read(1);
      if (next instanceof Uint8Array) {
        bytes.push(next[0] ?? 0);
        if (next[0] === 0x0a) return pattern.exec(Buffer.from(bytes).toString())?.[1];
        if (bytes.length > lengthMax) return undefined;
      } else if (socket.destroyed || socket.readableEnded) return undefined;
      else await readable(socket);
    }
  })();
  const late = sleep(clock, patienceMs, limit.signal).then(() => undefined);
  const found = await Promise.race([read, late]);
  limit.abort();
  return found;
}

function readable(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const events = ['readable', 'end', 'close', 'error'] as const;
    const done = (): void => {
      for (const event of events) socket.removeListener(event, done);
      resolve();
    };
    for (const event of events) socket.on(event, done);
  });
}
