// What containers reach of their host and of each other: real containers, the agent as users run it, on a network that it closes and on the engine's.

import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startPodman, type TestPodman, whyNoPodman } from '../src/agent/drivers/container/test-podman.ts';
import { type Fleet, startFleet } from './processes.ts';

const why =
  whyNoPodman() ??
  (spawnSync('unshare', ['--net', 'nft', 'add table bridge t']).status === 0
    ? undefined
    : 'no nftables are to be had here (package nftables)');
/** Tries each of `$TRIES`, HOST:PORT, and serves what came of it at port 80. */
const probe = `for each in $TRIES; do
  if (echo 'GET / HTTP/1.0'; echo; sleep 2) | nc -w 4 \${each%:*} \${each##*:} 2>/dev/null | head -c 64 | cat >/www/said && test -s /www/said; then echo "$each reached"; else echo "$each refused"; fi
done >/www/tried
cat /proc/net/if_inet6 >/www/ipv6 2>&1
mkdir /www/done
cat /www/tried /www/ipv6 >/www/index.html
exec httpd -f -p 80 -h /www`;

describe.skipIf(why !== undefined)(`containers${why === undefined ? '' : ` (${why})`}`, () => {
  let subnet: string;
  let directory: string;
  let podman: TestPodman;
  const servers: Server[] = [];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-containers-'));
    podman = await startPodman();
    await podman.load([{ name: 'probe', script: probe }]);
    subnet = await podman.addNetwork('closed');
  });
  afterAll(async () => {
    for (const server of servers) server.close();
    await podman.stop();
    await rm(directory, { recursive: true, force: true });
  });

  /** On all addresses of the host. */
  async function serve(): Promise<number> {
    const server = createServer((socket) => socket.on('error', () => {}).end('of the host\n'));
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
    return (server.address() as AddressInfo).port;
  }
  const ownAddress = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address;

  /** A container, and what answers at its published port when it has tried all. */
  async function tried(
    fleet: Fleet,
    name: string,
    tries: readonly string[],
  ): Promise<{ text: string; address: string }> {
    await fleet.client.create('instance', {
      metadata: { name },
      spec: {
        ...{ image: 'probe', cpus: 1, memoryMiB: 64, stopGraceMs: 100 },
        containers: [
          {
            name: 'main',
            image: 'probe',
            env: { TRIES: tries.join(' ') },
            ports: [{ containerPort: 80, hostPort: 0, protocol: 'tcp' }],
          },
        ],
      },
    });
    const { status } = await fleet.ready(name);
    const port = status.guest?.ports[0]?.hostPort;
    const page = (): Promise<string> =>
      fetch(`http://127.0.0.1:${port}/`).then(
        async (answer) => (answer.ok ? answer.text() : ''),
        () => '',
      );
    await expect.poll(page, { timeout: 60_000, interval: 250 }).toMatch(/reached|refused/);
    return { text: await page(), address: status.guest?.address ?? '' };
  }

  async function withFleet(name: string, agent: Record<string, unknown>, act: (fleet: Fleet) => Promise<void>) {
    const fleet = await startFleet(join(directory, name), {
      ...{ drivers: ['container'], containerEngine: `unix://${podman.socketPath}`, agent },
    });
    const spec = { source: 'docker://localhost/probe:1', format: 'container' as const };
    try {
      await fleet.client.create('image', { metadata: { name: 'probe' }, spec });
      await act(fleet);
    } finally {
      const agentId = (await readFile(join(fleet.agentDirectory, 'agent-id'), 'utf8')).trim();
      await fleet.removeAll();
      await fleet.stop();
      for (const family of ['inet', 'bridge'])
        spawnSync('nft', ['delete', 'table', family, `berth_${agentId}_containers`]);
    }
  }

  it('on a network that is closed reach neither their host nor each other, and are reached at their ports', async () => {
    const [secret, open] = [await serve(), await serve()];
    await withFleet('closed', { containerNetwork: 'closed', hostPortsReached: [open] }, async (fleet) => {
      const hosts = [`${subnet}.1`, ...(ownAddress === undefined ? [] : [ownAddress])];
      const ann = await tried(fleet, 'ann', [...hosts.map((host) => `${host}:${secret}`), `${subnet}.1:${open}`]);
      for (const host of hosts) expect(ann.text).toContain(`${host}:${secret} refused`);
      expect(ann.text).toContain(`${subnet}.1:${open} reached`);
      expect(ann.text).not.toContain('eth0'); // it has no address of IPv6
      expect(ann.address).toMatch(new RegExp(`^${subnet.replaceAll('.', '\\.')}\\.`));
      const ben = await tried(fleet, 'ben', [
        `${ann.address}:80`,
        `${new URL(fleet.url).hostname}:${new URL(fleet.url).port}`,
      ]);
      expect(ben.text).toContain(`${ann.address}:80 refused`);
      expect(ben.text).not.toContain('reached');
    });
  });

  it('on the network of the engine reach what listens on all addresses, and not the loopback of their host', async () => {
    const port = await serve();
    await withFleet('engine', {}, async (fleet) => {
      const first = await tried(fleet, 'ann', ['127.0.0.1:1']);
      const gateway = first.address.replace(/\.\d+$/, '.1');
      const api = new URL(fleet.url).port;
      const { text } = await tried(fleet, 'ben', [
        `${gateway}:${port}`,
        `${first.address}:80`,
        `${gateway}:${api}`,
        `127.0.0.1:${api}`,
      ]);
      expect(text).toContain(`${gateway}:${port} reached`);
      expect(text).toContain(`${first.address}:80 reached`);
      expect(text).toContain(`${gateway}:${api} refused`);
      expect(text).toContain(`127.0.0.1:${api} refused`);
    });
  });
});
