// Two agents on this machine, as their operators start them: what they measured is counted once.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AgentConfig } from '../src/agent/config.ts';
import { type RunningAgent, startAgent } from '../src/agent/run.ts';
import { parse } from '../src/api/parse.ts';
import type { Host } from '../src/api/resources/host.ts';
import { silentLogger } from '../src/base/log.ts';
import { startTestServer } from '../src/server/testing.ts';
import { berthAt } from './recipe-cli.ts';

let directory: string;
let server: Awaited<ReturnType<typeof startTestServer>>;
let agents: RunningAgent[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-two-'));
  server = await startTestServer();
  agents = [];
});
afterEach(async () => {
  for (const agent of agents) await agent.close();
  await server.close();
  await rm(directory, { recursive: true });
});

async function start(hostName: string, machineId?: string): Promise<void> {
  const config = parse(AgentConfig, {
    serverUrl: server.url,
    token: `host:${hostName}`,
    hostName,
    dataDirectory: join(directory, hostName),
    drivers: ['fake'],
    ...(machineId === undefined ? {} : { machineId }),
  });
  agents.push(await startAgent(config, { log: silentLogger }));
}

async function hostWith(name: string, holds: (host: Host) => boolean): Promise<Host> {
  const { items, revision } = await server.client.list('host');
  const now = items.find(({ metadata }) => metadata.name === name);
  if (now && holds(now)) return now;
  for await (const change of server.client.watch('host', { revision }, AbortSignal.timeout(20_000)))
    if (change.type === 'put' && change.resource.metadata.name === name && holds(change.resource))
      return change.resource;
  throw new Error('the watch ended');
}

const shares = ({ status }: Host): boolean =>
  status.conditions.some(({ type, status: is }) => type === 'OwnMachine' && is === 'False');

async function memoryOf(name: string): Promise<number> {
  const [root] = (await server.client.providers(name)).providers;
  return root?.inventories['MEMORY_MB']?.total ?? 0;
}

it('counts the memory of this machine once', async () => {
  const machine = '5'.repeat(32);
  await start('h1', machine);
  const { status } = await hostWith('h1', (host) => host.status.capacity !== undefined);
  const whole = status.capacity?.['MEMORY_MB'] ?? 0;
  expect(await memoryOf('h1')).toBe(whole);

  await start('h2', machine);
  await start('elsewhere', '6'.repeat(32));
  await hostWith('h1', shares);
  await hostWith('h2', shares);
  expect((await memoryOf('h1')) + (await memoryOf('h2'))).toBe(whole);
  expect(await memoryOf('elsewhere')).toBe(whole);

  const { stdout } = await berthAt({ url: server.url, token: 'operator' }, ['host', 'show', 'h2']);
  expect(stdout).toContain('shares its machine with "h1"');
});
