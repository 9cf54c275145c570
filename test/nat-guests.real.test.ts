// Real guests on the networks of their host, the NAT network that the agent makes and a bridge of the operator's: QEMU and libvirt, the tiny
// image, and a namespace that stands for the host.

import { stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GuestSpec } from '../src/agent/drivers/driver.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from '../src/agent/drivers/libvirt/test-libvirt.ts';
import { testSpec } from '../src/agent/drivers/qemu/test-host.ts';
import { makeNetworks, type TestAgent, type TestNetworks, whyNoNetworks } from '../src/agent/network/test-networks.ts';
import { imageDirectory, tinyImage } from './tiny-image.ts';

const noNetworks = whyNoNetworks();
const script = `#!/bin/sh
echo "asked: $(wget -qO- http://169.254.169.254/latest/meta-data/instance-id) $(wget -qO- http://169.254.169.254/2009-04-04/meta-data/local-ipv4)"
echo "outside: $(wget -qO- http://192.0.2.2/)"
echo "host: $(wget -T 2 -qO- http://192.0.2.1:7070/ || echo none)"
`;
/** Asks by name for the page of ann, which may still boot. */
const askAnn = `tries=0
until first=$(wget -T 5 -qO- http://ann/) || [ $tries = 30 ]; do tries=$((tries + 1)); sleep 1; done
echo "by name: $first $(wget -T 20 -qO- http://ann.shop/)"
`;
/** Speaks with another's address: first as it would have to be asked for, then with the gateway's card known already. */
const spoofScript = (other: string): string => `#!/bin/sh
ask() { wget -T 3 -qO- http://169.254.169.254/latest/meta-data/instance-id || echo nothing; }
echo "as itself: $(ask)"
echo "with the address of ${other}"
card=$(ip neigh show 10.77.0.1 | sed -n 's/.*lladdr \\([0-9a-f:]*\\).*/\\1/p')
killall udhcpc
ip -4 addr flush dev eth0
ip addr add ${other}/24 dev eth0
ip route add default via 10.77.0.1
echo "by asking: $(ask)"
arp -s 10.77.0.1 $card
echo "by force: $(ask)"
`;

describe.each(['qemu', 'libvirt'])('%s', (driver) => {
  const why = noNetworks ?? (driver === 'libvirt' ? whyNoLibvirt() : undefined);
  describe.skipIf(why !== undefined)(
    `has guests on a network of their host${why === undefined ? '' : ` (${why})`}`,
    () => {
      let networks: TestNetworks;
      let daemon: TestLibvirt | undefined;
      const open = (bridge = ''): Promise<TestAgent> =>
        networks.agent({ bridge, imageRoot: imageDirectory, libvirt: daemon?.path ?? '' });
      beforeEach(async () => {
        await tinyImage();
        networks = await makeNetworks();
        if (driver === 'libvirt') daemon = await startLibvirt({ networkNamespace: networks.hostNamespace });
      });
      afterEach(async () => {
        await daemon?.stop();
        await networks.dispose();
      });

      const guestSpec = async (number: number, name: string, change: Partial<GuestSpec> = {}): Promise<GuestSpec> =>
        testSpec({
          instanceId: `inst_${'0'.repeat(25)}${number}`,
          name,
          hostname: name,
          imageName: 'tiny',
          image: (await tinyImage()).spec,
          memoryMiB: 128,
          userData: script,
          ...change,
        });

      /** Tried until somebody answers: an adopted guest's ports come back after it was found. */
      const page = (port: number | undefined): Promise<string> =>
        networks.mustHost(
          'curl',
          '-s',
          '-f',
          '--retry',
          '20',
          '--retry-connrefused',
          '--retry-delay',
          '1',
          `http://127.0.0.1:${port}/`,
        );

      it('who have an address, a way out, their own metadata and published ports, also for the next agent, cannot use the address of another, and leave nothing', async () => {
        await networks.serve('outside', 80);
        await networks.serve('host', 7070);
        let agent = await open();
        await agent.recover();
        expect(await agent.fingerprint()).toMatchObject({ available: true });
        const ports = [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }] as const;
        const project = 'shop';
        // They boot at the same time: ben asks until ann serves.
        const ann = await guestSpec(1, 'ann', { ports, project });
        const ben = await guestSpec(2, 'ben', { ports, project, userData: `${script}${askAnn}` });
        await agent.create(ann);
        await agent.create(ben);
        const [known] = await agent.guests();
        const eve = await guestSpec(3, 'eve', { userData: spoofScript(known?.address ?? '') });
        await agent.create(eve);
        const specs = [ann, ben];
        const addresses: (string | undefined)[] = [];
        for (const { instanceId, hostname } of specs) {
          const guest = await agent.untilReady(instanceId);
          addresses.push(guest.address);
          const log = await agent.log(instanceId);
          expect(log).toContain(`berth: address eth0 ${guest.address}`);
          expect(log).toContain(`asked: ${instanceId}-1 ${guest.address}`);
          expect(log).toContain('outside: seen 192.0.2.1');
          expect(log).toContain('host: none');
          // Its tap was opened for it: QEMU runs as a user of its own.
          const run = join(networks.directory, 'guests', instanceId, 'run');
          if (driver === 'qemu') expect((await stat(run)).uid).toBeGreaterThan(0);
          expect(await page(guest.ports[0]?.hostPort)).toBe(`Hello from ${hostname}.\n`);
        }
        expect(new Set(addresses).size).toBe(2);
        expect(await agent.log(ben.instanceId)).toContain('by name: Hello from ann. Hello from ann.');

        await agent.untilReady(eve.instanceId);
        const log = await agent.log(eve.instanceId);
        expect(log).toContain(`with the address of ${addresses[0]}`);
        expect(log).toContain(`as itself: ${eve.instanceId}-1`);
        expect(log).toContain('by asking: nothing');
        expect(log).toContain('by force: nothing');
        expect(log).not.toContain(`${ann.instanceId}-1`);
        const counters = await networks.counters();
        expect(counters['spoofed_arp']).toBeGreaterThan(0);
        expect(counters['spoofed_address']).toBeGreaterThan(0);

        await agent.kill();
        agent = await open();
        await agent.recover();
        for (const [i, { instanceId, hostname }] of specs.entries()) {
          const guest = (await agent.guests()).find((each) => each.instanceId === instanceId);
          expect(guest).toMatchObject({ state: 'running', address: addresses[i] });
          expect(await page(guest?.ports[0]?.hostPort)).toBe(`Hello from ${hostname}.\n`);
        }

        for (const { instanceId } of [...specs, eve]) await agent.remove(instanceId);
        expect(await networks.mustHost('ip', '-brief', 'link', 'show', 'master', 'berth0')).toBe('');
        expect(await networks.mustHost('nft', 'list', 'set', 'bridge', 'berth', 'places')).not.toContain('elements');
      });

      it('who get an address from a DHCP server on a bridge, also late, and it is known as soon as their host has heard of it', async () => {
        for (const words of [
          'link add name br0 type bridge',
          'address add 10.88.0.1/24 dev br0',
          'link set dev br0 up',
        ])
          await networks.mustHost('ip', ...words.split(' '));
        const agent = await open('br0');
        await agent.recover();
        const spec = await guestSpec(1, 'ann', {
          userData: '#!/bin/sh\necho "no lease: $(ip -4 -o addr show dev eth0)"\n',
        });
        await agent.create(spec);
        expect((await agent.untilReady(spec.instanceId)).address).toBeUndefined();
        const config = join(networks.directory, 'late.conf');
        const lines = ['interface=br0', 'bind-interfaces', 'port=0', 'no-ping', 'dhcp-range=10.88.0.10,10.88.0.99,1h'];
        await writeFile(config, [...lines, `dhcp-leasefile=${join(networks.directory, 'leases')}`, ''].join('\n'));
        await networks.mustHost(
          'dnsmasq',
          `--conf-file=${config}`,
          `--pid-file=${join(networks.directory, 'late.pid')}`,
        );
        const { address = '' } = await agent.untilAddress(spec.instanceId);
        expect(address).toMatch(/^10\.88\.0\.\d+$/);
        const asked = ['curl', '-s', '-f', '--max-time', '5', `http://${address}/`];
        expect(await networks.mustHost(...asked)).toBe('Hello from ann.\n');
        expect(await agent.log(spec.instanceId)).toContain(`berth: address eth0 ${address}`);
        await agent.remove(spec.instanceId);
        expect(await networks.mustHost('ip', '-brief', 'link', 'show', 'master', 'br0')).toBe('');
      });
    },
  );
});
