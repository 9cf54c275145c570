// Faults of control planes.

import { drawDownMs, drawJumpMs, type Fault, serverFault } from './fault.ts';
import { stopOrKill } from './stop-or-kill.ts';

/** A flood lasts at most this many times the silence after which a host counts as offline. */
const floodedSilencesMax = 2;

export const serverFaults = [
  serverFault({
    kind: 'server-crash',
    whileRestoring: true,
    async strike(server, { prng, wait }) {
      server.crash();
      await wait(drawDownMs(prng));
      server.start();
    },
  }),
  serverFault({
    kind: 'server-stop',
    whileRestoring: true,
    applies: ({ cache }) => cache !== undefined, // a server that has not started yet cannot be asked to stop
    async strike(server, { on, prng, wait }) {
      await stopOrKill(server, { clock: on.clock, prng });
      await wait(drawDownMs(prng));
      server.start();
    },
  }),
  serverFault({ kind: 'server-pause', strike: (server, { prng }) => server.pause(prng.below(8000)) }),
  serverFault({ kind: 'server-clock-jump', strike: (server, { prng }) => server.jumpWallTime(drawJumpMs(prng)) }),
  serverFault({
    kind: 'server-store-parted',
    async strike(server, { prng, wait }) {
      server.partFromStore(true);
      await wait(500 + prng.below(prng.chance(1, 2) ? 5000 : 40_000));
      server.partFromStore(false);
    },
    mend({ controlPlanes }) {
      for (const server of controlPlanes) server.partFromStore(false);
    },
  }),
  {
    // All agents lose their server at once, and all of them reconnect at once.
    kind: 'all-servers-crash',
    async strike({ targets: { serversUp }, prng, hit, wait }) {
      if (serversUp.length === 0) return;
      hit(`${serversUp.length}`);
      for (const each of serversUp) each.crash();
      await wait(drawDownMs(prng));
      for (const each of serversUp) each.start();
    },
  } as const satisfies Fault,
];

export const laterServerFaults = [
  serverFault({
    kind: 'server-flooded',
    drawnLast: true,
    async strike(server, { on, prng, wait }) {
      const floodMsMax = floodedSilencesMax * on.offlineAfterMs;
      server.flood(true);
      await wait(500 + prng.below(Math.ceil(floodMsMax)));
      server.flood(false);
      // No second flood within one silence: at the edges of each flood the product may see rest where the checker counts a flood.
      await wait(floodMsMax);
    },
  }),
];
