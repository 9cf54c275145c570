// Joins two connections: what comes from one goes to the other, both ways, and both end together.

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
