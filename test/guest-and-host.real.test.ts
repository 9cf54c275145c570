// What a guest on QEMU's own network reaches of its host: a real guest, the agent as users run it, as root.

import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, startFleet } from './processes.ts';
import { tinyImage } from './tiny-image.ts';

/** No other agent of this machine has them: what one of them refuses to its guests would be refused to these. */
const guestUsers = { first: 1_800_000_000 + (process.pid % 1_000_000) * 10, count: 10 };

const reason =
  process.getuid?.() !== 0
    ? 'only root may run guests as somebody else'
    : spawnSync('unshare', ['--net', 'nft', 'add table inet t']).status === 0
      ? undefined
      : 'no nftables are to be had here (package nftables)';

describe.skipIf(reason !== undefined)(`a guest on its own network${reason ? ` (${reason})` : ''}`, () => {
  let directory: string;
  let fleet: Fleet;
  const servers: Server[] = [];
  const serve = async (host: string): Promise<number> => {
    const server = createServer((socket) => socket.on('error', () => {}).end('of the host\n'));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    return (server.address() as AddressInfo).port;
  };
  const tableThere = async (): Promise<boolean> => {
    const agentId = (await readFile(join(fleet.agentDirectory, 'agent-id'), 'utf8')).trim();
    return spawnSync('nft', ['list', 'table', 'inet', `berth_${agentId}`]).status === 0;
  };
  const ownAddress = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address;
  let open = 0;

  beforeAll(async () => {
    const tiny = await tinyImage();
    directory = await mkdtemp(join(tmpdir(), 'berth-e2e-'));
    await chmod(directory, 0o711); // guests run as users of their own
    open = await serve('127.0.0.1');
    fleet = await startFleet(directory, { agent: { hostPortsReached: [open], guestUsers } });
    await fleet.client.create('image', { metadata: { name: 'tiny' }, spec: tiny.spec });
  });
  afterAll(async () => {
    await fleet.removeAll();
    await fleet.stop();
    for (const server of servers) server.close();
    await rm(directory, { recursive: true, force: true });
  });

  it('reaches nothing of its host that it may not, and is reached at its ports, over a restart of the agent', async () => {
    const tries = [
      ['loopback', '10.0.2.2', await serve('127.0.0.1')],
      ['allowed', '10.0.2.2', open],
      ...(ownAddress === undefined ? [] : ([['address', ownAddress, await serve(ownAddress)]] as const)),
    ] as const;
    const script = tries.map(
      ([name, host, port]) =>
        `if sleep 2 | timeout 10 nc ${host} ${port} | grep -q host; then echo "${name}: reached"; else echo "${name}: refused"; fi`,
    );
    script.push(
      `if wget -T 10 -qO- http://10.0.2.2:${new URL(fleet.url).port}/healthz; then echo "control plane: reached"; else echo "control plane: refused"; fi`,
    );
    await fleet.client.create('instance', {
      metadata: { name: 'web' },
      spec: {
        ...{ image: 'tiny', cpus: 1, memoryMiB: 128, stopGraceMs: 1000 },
        userData: ['#!/bin/sh', ...script, ''].join('\n'),
        ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }],
      },
    });
    const { status } = await fleet.ready('web');
    expect(status.phase).toBe('Running');
    let console = '';
    for await (const piece of fleet.client.log('web')) console += new TextDecoder().decode(piece);
    expect(console).toContain('loopback: refused');
    expect(console).toContain('allowed: reached');
    expect(console).toContain('control plane: refused');
    if (ownAddress !== undefined) expect(console).toContain('address: refused');

    const port = status.guest?.ports[0]?.hostPort ?? 0;
    const page = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/`)).text();
    expect(await page()).toContain('Hello from web');
    await fleet.restartAgent();
    expect(await tableThere()).toBe(true);
    expect(await page()).toContain('Hello from web');

    await fleet.client.delete('instance', 'web');
    await fleet.gone('web');
    expect(await tableThere()).toBe(false);
  });
});
