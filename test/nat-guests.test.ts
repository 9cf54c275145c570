// Real guests on the NAT network that the agent makes: QEMU and the tiny image, in a namespace that stands for the host.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { GuestSpec } from '../src/agent/drivers/driver.ts';
import { testSpec } from '../src/agent/drivers/qemu/test-host.ts';
import { makeNetworks, type TestAgent, type TestNetworks, whyNoNetworks } from '../src/agent/network/test-networks.ts';
import { imageDirectory, tinyImage } from './tiny-image.ts';

const why = whyNoNetworks();
const script = `#!/bin/sh
echo "asked: $(wget -qO- http://169.254.169.254/latest/meta-data/instance-id) $(wget -qO- http://169.254.169.254/2009-04-04/meta-data/local-ipv4)"
echo "outside: $(wget -qO- http://192.0.2.2/)"
echo "host: $(wget -T 1 -qO- http://192.0.2.1:7070/ 2>&1 | tail -n 1)"
`;

describe.skipIf(why !== undefined)(`guests on the NAT network${why === undefined ? '' : ` (${why})`}`, () => {
  let networks: TestNetworks;
  let agent: TestAgent;
  beforeEach(async () => {
    await tinyImage();
    networks = await makeNetworks();
    agent = await networks.agent({ imageRoot: imageDirectory });
  });
  afterEach(() => networks.dispose());

  it('have an address, a way out, their own metadata and published ports, also for the next agent, and leave nothing', async () => {
    await networks.serve('outside', 80);
    await networks.serve('host', 7070);
    expect(await agent.fingerprint()).toMatchObject({ available: true });
    const { spec: image } = await tinyImage();
    const spec = (number: number, name: string): GuestSpec =>
      testSpec({
        instanceId: `inst_${'0'.repeat(25)}${number}`,
        name,
        hostname: name,
        imageName: 'tiny',
        image,
        memoryMiB: 128,
        ports: [{ guestPort: 80, hostPort: 0, protocol: 'tcp' }],
        userData: script,
      });
    const specs = [spec(1, 'ann'), spec(2, 'ben')];
    for (const each of specs) await agent.create(each);
    const addresses: (string | undefined)[] = [];
    for (const { instanceId, hostname } of specs) {
      const guest = await agent.untilReady(instanceId);
      addresses.push(guest.address);
      const log = await agent.log(instanceId);
      expect(log).toContain(`berth: address eth0 ${guest.address}`);
      expect(log).toContain(`asked: ${instanceId}-1 ${guest.address}`);
      expect(log).toContain('outside: seen 192.0.2.1');
      expect(log).not.toContain('host: seen');
      expect(await page(guest.ports[0]?.hostPort)).toBe(`Hello from ${hostname}.\n`);
    }
    expect(new Set(addresses).size).toBe(2);

    await agent.kill();
    agent = await networks.agent({ imageRoot: imageDirectory });
    await agent.recover();
    for (const [i, { instanceId, hostname }] of specs.entries()) {
      const guest = (await agent.guests()).find((each) => each.instanceId === instanceId);
      expect(guest).toMatchObject({ state: 'running', address: addresses[i] });
      expect(await page(guest?.ports[0]?.hostPort)).toBe(`Hello from ${hostname}.\n`);
    }

    for (const { instanceId } of specs) await agent.remove(instanceId);
    expect(await networks.mustHost('ip', '-brief', 'link', 'show', 'master', 'berth0')).toBe('');
    expect(await networks.mustHost('nft', 'list', 'set', 'bridge', 'berth', 'places')).not.toContain('elements');
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
});
