// The first line on a direct connection: the move, and in a live move the name of a disk or the memory. Without such a name, HTTP/2 follows, in
// which the listening side is the client.

import type { Duplex } from 'node:stream';
import { type Clock, sleep } from '../../../base/clock.ts';

const pattern = /^berth-move\/1 (mig_[0-9a-z]{26})(?: (memory|disk|vol_[0-9a-z]{26}))?\n$/;
const lengthMax = 96;
const patienceMs = 10_000;

export interface Hello {
  readonly id: string;
  /** Absent: the connection is for requests. */
  readonly name?: string;
}

export const helloOf = ({ id, name }: Hello): string => `berth-move/1 ${id}${name === undefined ? '' : ` ${name}`}\n`;

/** Undefined: it is invalid, or does not arrive. */
export async function readHello(socket: Duplex, clock: Clock): Promise<Hello | undefined> {
  const limit = new AbortController();
  const bytes: number[] = [];
  const read = (async () => {
    for (;;) {
      // Byte by byte, so that nothing after the line is consumed.
      const next: unknown = socket.read(1);
      if (next instanceof Uint8Array) {
        bytes.push(next[0] ?? 0);
        if (next[0] === 0x0a) return parsed(Buffer.from(bytes).toString());
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

function parsed(line: string): Hello | undefined {
  const [, id, name] = pattern.exec(line) ?? [];
  if (id === undefined) return undefined;
  return { id, ...(name === undefined ? {} : { name }) };
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
