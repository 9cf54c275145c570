// The agent's side of the protocol with nothing behind it: registers a roomy host and tells what it is asked to run.

import { createClient } from '../src/api/client/client.ts';
import type { ServerProcess } from './server-process.ts';

/** Of every agent that a benchmark plays; none has a data directory. */
export const benchAgentId = `agent_${'0'.repeat(26)}`;

export async function agentClientOf(server: ServerProcess, host: string) {
  const operator = createClient({
    fetch: (url, init) => fetch(url, init),
    url: server.url,
    token: server.operatorToken,
  });
  // No agent may claim so much; an operator may state it.
  const inventory = { VCPU: { total: 1_000_000 } };
  await operator.create('host', { metadata: { name: host }, spec: { paused: false, inventory } });
  const token = server.hostToken(host);
  const agent = createClient({ fetch: (url, init) => fetch(url, init), url: server.url, token }).agent(host);
  const session = await agent.register({
    session: `bench-${host}`,
    machineId: host,
    agentId: benchAgentId,
    bootId: 'bench',
    architecture: 'amd64',
    capacity: { VCPU: 8_192, MEMORY_MB: 1_000_000_000, DISK_GB: 1_000_000 },
    reserved: {},
    labels: {},
    drivers: [{ name: 'fake', available: true }],
    images: [],
    agentVersion: 'bench',
  });
  return {
    heartbeat: () => agent.heartbeat({ epoch: session.epoch }),
    async watch(signal: AbortSignal, seen: (instanceId: string) => void): Promise<void> {
      try {
        for await (const event of agent.assignments(session.epoch, signal))
          if (event.type === 'put') seen(event.assignment.instanceId);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
  };
}
