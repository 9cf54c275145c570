// An agent of the crucible as a process: the agent of `berth agent`, with a balancer before the control planes, and hands that reach
// guests in another process. Its one argument is a JSON file.

import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { AgentConfig } from '../../src/agent/config.ts';
import { startAgent } from '../../src/agent/run.ts';
import { Reports } from '../../src/api/agent-protocol.ts';
import { matches, parse } from '../../src/api/parse.ts';
import { system, systemLogger } from '../../src/base/system.ts';
import { startBalancer } from './balancer.ts';
import { createFarDriver } from './far-driver.ts';
import { send } from './guest-wire.ts';

export interface CrucibleAgent {
  readonly agent: Partial<AgentConfig>;
  readonly controlPlanes: readonly string[];
  readonly worldSocket: string;
  readonly number: number;
}

const stopped = system.terminationSignal();
const { agent, controlPlanes, worldSocket, number }: CrucibleAgent = JSON.parse(
  readFileSync(system.arguments()[0] ?? '', 'utf8'),
);
const port = await startBalancer(controlPlanes, number);
const config = parse(AgentConfig, { ...agent, serverUrl: `http://127.0.0.1:${port}` });
let world: Socket | undefined;

// The checkers see every report before a control plane can have received it.
const fetchItself = globalThis.fetch;
globalThis.fetch = (input, init) => {
  if (typeof input === 'string' && input.endsWith('/reports') && typeof init?.body === 'string') {
    const reports: unknown = JSON.parse(init.body);
    if (world && matches(Reports, reports)) send(world, { type: 'reports', reports });
  }
  return fetchItself(input, init);
};

const running = await startAgent(config, {
  log: systemLogger('info'),
  drivers: {
    fake: () =>
      createFarDriver(worldSocket, config.hostName, (socket) => {
        world = socket;
      }),
  },
});
const failure = await Promise.race([
  running.failed,
  new Promise<undefined>((resolve) => stopped.addEventListener('abort', () => resolve(undefined), { once: true })),
]);
await running.close();
if (failure) systemLogger('info').error('the agent cannot go on', { error: failure.message });
system.exit(failure ? 1 : 0);
