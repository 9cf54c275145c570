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

/** Between two tries of an operator, until the control planes have noticed the silence. */
const declareMs = 2_000;
const declareTries = 30;

export const laterHostFaults = [
  agentFault({
    // The power of a host is off, an operator looks and says so, and the host comes back with its old disk.
    kind: 'host-declared-down',
    drawnLast: true,
    async strike(host, { on, prng, wait }) {
      host.losePower();
      for (let tries = 0; tries < declareTries && !host.up; tries++) {
        await wait(declareMs);
        if (host.up || !(await on.operator.declareDown(host.name))) continue;
        on.tally.hit('declared-down');
        break;
      }
      await wait(drawDownMs(prng));
      host.start();
    },
  }),
];
