// Joins two connections: forwards data in both directions, and ends both together.

import type { Duplex } from 'node:stream';

export function joinStreams(a: Duplex, b: Duplex): void {
  const end = (): void => {
    a.destroy();
    b.destroy();
  };
  for (const each of [a, b]) {
    each.on('error', end);
    each.on('close', end);
  }
  a.pipe(b);
  b.pipe(a);
}
