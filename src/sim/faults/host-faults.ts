// Faults of hosts and their agents. A crash of the agent leaves the guests running; a power loss does not.

import { agentFault, drawDownMs, drawJumpMs } from './fault.ts';
import { stopOrKill } from './stop-or-kill.ts';

export const hostFaults = [
  agentFault({
    kind: 'agent-crash',
    whileRestoring: true,
    async strike(host, { prng, wait }) {
      host.crash();
      await wait(drawDownMs(prng));
      host.start();
    },
  }),
  agentFault({
    kind: 'agent-stop',
    whileRestoring: true,
    async strike(host, { on, prng, wait }) {
      await stopOrKill(host, { clock: on.clock, prng });
      await wait(drawDownMs(prng));
      host.start();
    },
  }),
  agentFault({ kind: 'agent-pause', strike: (host, { prng }) => host.pause(prng.below(30_000)) }),
  agentFault({ kind: 'agent-clock-jump', strike: (host, { prng }) => host.jumpWallTime(drawJumpMs(prng)) }),
  agentFault({
    kind: 'host-power-loss',
    async strike(host, { prng, wait }) {
      host.losePower();
      await wait(500 + drawDownMs(prng));
      host.start();
    },
  }),
];
