// Control plane and agent as they are, over real sockets, with the fake driver: what each says, the other understands.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AgentConfig } from '../src/agent/config.ts';
import { type RunningAgent, startAgent } from '../src/agent/run.ts';
import type { WatchedChange } from '../src/api/client/client.ts';
import { parse } from '../src/api/parse.ts';
import type { Instance } from '../src/api/resources/instance.ts';
import { silentLogger } from '../src/base/log.ts';
import { startTestServer } from '../src/server/testing.ts';
import { expectConsistent } from './consistent.ts';

describe('agent and control plane', () => {
  let directory: string;
  let server: Awaited<ReturnType<typeof startTestServer>>;
  let agent: RunningAgent;

  const start = (dataDirectory = directory): Promise<RunningAgent> =>
    startAgent(
      parse(AgentConfig, {
        serverUrl: server.url,
        token: 'host:host-1',
        hostName: 'host-1',
        dataDirectory,
        drivers: ['fake'],
      }),
      { log: silentLogger },
    );

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-agent-'));
    server = await startTestServer({ policy: { heartbeatMs: 200, offlineAfterMs: 5000 } });
    await server.client.create('image', {
      metadata: { name: 'tiny' },
      spec: { source: 'file:///tiny.qcow2', defaults: { cpus: 1, memoryMiB: 512 } },
    });
    agent = await start();
  });
  afterEach(async () => {
    await expectConsistent(server.client);
    await agent.close();
    await server.close();
    await rm(directory, { recursive: true });
  });

  /** The instance's states from now on, until one satisfies `wanted`; undefined stands for "gone". */
  const until = async (
    name: string,
    wanted: (instance: Instance | undefined) => boolean,
  ): Promise<Instance | undefined> => {
    const { items, revision } = await server.client.list('instance');
    const now = items.find((instance) => instance.metadata.name === name);
    if (wanted(now)) return now;
    const stop = new AbortController();
    try {
      for await (const change of server.client.watch('instance', { revision }, stop.signal)) {
        const seen = seenIn(change, name);
        if (seen !== 'other' && wanted(seen)) return seen;
      }
    } finally {
      stop.abort();
    }
    throw new Error('the watch ended');
  };
  const seenIn = (change: WatchedChange<Instance>, name: string): Instance | undefined | 'other' => {
    if (change.type === 'bookmark' || change.resource.metadata.name !== name) return 'other';
    return change.type === 'put' ? change.resource : undefined;
  };

  it('run an instance from create to gone, and show its console', async () => {
    await server.client.create('instance', { metadata: { name: 'web-1' }, spec: { image: 'tiny' } });
    const ready = await until('web-1', (instance) => instance?.status.guest?.ready === true);
    expect(ready?.status).toMatchObject({
      phase: 'Running',
      host: 'host-1',
      guest: { state: 'running', address: '10.0.2.15' },
    });
    expect(ready?.status.guest?.phases.map((phase) => phase.name)).toContain('boot');

    let text = '';
    for await (const piece of server.client.log('web-1')) text += new TextDecoder().decode(piece);
    expect(text).toContain('berth: ready');

    await server.client.delete('instance', 'web-1');
    await until('web-1', (instance) => instance === undefined);
    expect((await server.client.list('instance')).items).toEqual([]);
  });

  it('stop an instance and start it again', async () => {
    await server.client.create('instance', { metadata: { name: 'web-1' }, spec: { image: 'tiny' } });
    await until('web-1', (instance) => instance?.status.phase === 'Running');
    await server.client.replace('instance', 'web-1', { spec: { image: 'tiny', powerState: 'stopped' } });
    await until('web-1', (instance) => instance?.status.phase === 'Stopped');
    await server.client.replace('instance', 'web-1', { spec: { image: 'tiny', powerState: 'running' } });
    const again = await until('web-1', (instance) => instance?.status.guest?.ready === true);
    expect(again?.status.incarnation).toBe(1);
  });

  it('suspend an instance, let it go on, and delete a suspended one', async () => {
    const spec = { image: 'tiny' } as const;
    await server.client.create('instance', { metadata: { name: 'web-1' }, spec });
    await expect(
      server.client.create('instance', { metadata: { name: 'web-2' }, spec: { ...spec, powerState: 'suspended' } }),
    ).rejects.toMatchObject({ code: 'InvalidRequest', field: 'spec.powerState' });
    const before = await until('web-1', (instance) => instance?.status.guest?.ready === true);
    await server.client.replace('instance', 'web-1', { spec: { ...spec, powerState: 'suspended' } });
    await until('web-1', (instance) => instance?.status.phase === 'Suspended');
    const { items } = await server.client.list('event');
    expect(items.map((event) => event.spec.reason)).toContain('Suspended');
    await server.client.replace('instance', 'web-1', { spec: { ...spec, powerState: 'running' } });
    const after = await until('web-1', (instance) => instance?.status.phase === 'Running');
    expect(after?.status).toMatchObject({ incarnation: 1, guest: { startedAtMs: before?.status.guest?.startedAtMs } });
    await server.client.replace('instance', 'web-1', { spec: { ...spec, powerState: 'suspended' } });
    await until('web-1', (instance) => instance?.status.phase === 'Suspended');
    await server.client.delete('instance', 'web-1');
    await until('web-1', (instance) => instance === undefined);
  });

  it('delete an instance while it is being built', async () => {
    await server.client.create('instance', { metadata: { name: 'web-1' }, spec: { image: 'tiny' } });
    await until('web-1', (instance) => instance?.status.phase === 'Starting');
    await server.client.delete('instance', 'web-1');
    await until('web-1', (instance) => instance === undefined);
  });

  it('show the host with what was measured of it', async () => {
    await server.client.create('instance', { metadata: { name: 'web-1' }, spec: { image: 'tiny' } });
    await until('web-1', (instance) => instance?.status.phase === 'Running');
    const host = await server.client.get('host', 'host-1');
    expect(host.status).toMatchObject({ epoch: 1, drivers: [{ name: 'fake', available: true }], unknownGuests: [] });
    expect(host.status.machineId).toMatch(/^[0-9a-f]{32}$/);
    expect(host.status.capacity?.['VCPU']).toBeGreaterThan(0);
  });

  it('keep one host over restarts of its agent', async () => {
    await until('none', (instance) => instance === undefined);
    await agent.close();
    agent = await start();
    await server.client.create('instance', { metadata: { name: 'web-1' }, spec: { image: 'tiny' } });
    await until('web-1', (instance) => instance?.status.phase === 'Running');
    expect((await server.client.list('host')).items).toHaveLength(1);
  });

  describe('of another data directory', () => {
    let other: string;
    beforeEach(async () => {
      other = await mkdtemp(join(tmpdir(), 'berth-agent-'));
    });
    afterEach(() => rm(other, { recursive: true }));

    /** Runs until it is refused. */
    const refusalOfOther = async (): Promise<string> => {
      const second = await start(other);
      const { message } = await second.failed;
      await second.close();
      return message;
    };
    const host = () => server.client.get('host', 'host-1');
    const untilHost = async (ready: 'True' | 'False'): Promise<void> => {
      await expect
        .poll(async () => (await host()).status.conditions.find(({ type }) => type === 'Ready')?.status, {
          timeout: 30_000,
        })
        .toBe(ready);
    };

    it('a second agent with the token of the host is refused, by name, and takes nothing from the first', async () => {
      await server.client.create('instance', { metadata: { name: 'web-1' }, spec: { image: 'tiny' } });
      await until('web-1', (instance) => instance?.status.guest?.ready === true);
      const { agentId } = (await host()).status;
      const refusal = await refusalOfOther();
      expect(refusal).toMatch(/host "host-1" belongs to agent_\w{26}, and this is agent_\w{26}.*which is heard/);
      expect(refusal).toContain(agentId);
      expect((await host()).status).toMatchObject({ epoch: 1, agentId, unknownGuests: [] });
      let text = ''; // over the first agent's line
      for await (const piece of server.client.log('web-1')) text += new TextDecoder().decode(piece);
      expect(text).toContain('berth: ready');
    });

    it('one comes in only when the host was removed and made again', async () => {
      await untilHost('True');
      await agent.close();
      await untilHost('False');
      expect(await refusalOfOther()).toContain('which is silent, but its guests may still run');
      await server.client.delete('host', 'host-1');
      await server.client.create('host', { metadata: { name: 'host-1' }, spec: {} });
      agent = await start(other);
      await untilHost('True');
    });

    it('one comes in when a person has given it the identity of the one that is gone', async () => {
      await untilHost('True');
      await agent.close();
      await writeFile(join(other, 'agent-id'), `${(await host()).status.agentId}\n`);
      agent = await start(other);
      await expect.poll(async () => (await host()).status.epoch).toBe(2);
    });
  });
});
