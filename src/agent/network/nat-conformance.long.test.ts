// The drivers of QEMU and libvirt keep the contract of all drivers on the NAT network, too. The network is made where the agent is, so this file runs itself once
// more in a network namespace of its own: outside of it, it must not make any.

import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { environment, randomSecret, system, systemClock } from '../../base/system.ts';
import { driverConformance, machineWords } from '../drivers/conformance.ts';
import { makeLibvirtTestHost } from '../drivers/libvirt/test-host.ts';
import { startLibvirt, type TestLibvirt, whyNoLibvirt } from '../drivers/libvirt/test-libvirt.ts';
import { makeQemuTestHost } from '../drivers/qemu/test-host.ts';
import { runningPid } from './dnsmasq.ts';
import { createNatNetwork } from './nat-network.ts';
import { whyNoNetworks } from './test-networks.ts';

const mark = 'BERTH_TEST_IN_OWN_NETWORK';

const inside = environment()[mark] !== undefined;

describe.skipIf(inside)('outside of its namespace', () => {
  const reason = whyNoNetworks();
  it.skipIf(reason !== undefined)(
    `the drivers of QEMU and libvirt on the NAT network keep the driver contract, in a namespace of their own${reason ? ` (${reason})` : ''}`,
    () => {
      const script = `ip link set lo up && exec "$@"`;
      const vitest = [system.nodePath(), 'node_modules/vitest/vitest.mjs', 'run', fileURLToPath(import.meta.url)];
      const { status, stdout, stderr } = spawnSync('unshare', ['--net', 'sh', '-c', script, 'sh', ...vitest], {
        env: { ...environment(), [mark]: '1' },
        encoding: 'utf8',
      });
      expect(status, `${stdout}${stderr}`).toBe(0);
    },
    600_000,
  );
});

describe.runIf(inside)('in its namespace', () => {
  let runDirectory: string;
  beforeAll(async () => {
    runDirectory = await mkdtemp(join(tmpdir(), 'berth-nat-'));
    await chmod(runDirectory, 0o755); // as /run is: dnsmasq is another user
  });
  afterAll(async () => {
    const dnsmasq = await runningPid(runDirectory);
    if (dnsmasq !== undefined) system.signal(dnsmasq, 'SIGTERM');
    await rm(runDirectory, { recursive: true });
  });
  const network = () =>
    createNatNetwork({
      subnet: '10.77.0.0/16',
      denied: [],
      metadataTokens: 'optional',
      owner: runDirectory,
      runDirectory,
      clock: systemClock,
      log: silentLogger,
      randomSecret,
    });
  const words = { ...machineWords, address: /^10\.77\.\d+\.\d+$/ };
  driverConformance('the QEMU driver on the NAT network', async () => {
    const host = await makeQemuTestHost();
    return { ...host, words, open: () => host.open({ network: network() }) };
  });

  const reason = whyNoLibvirt();
  describe.skipIf(reason !== undefined)(`with libvirt${reason ? ` (${reason})` : ''}`, () => {
    let daemon: TestLibvirt;
    beforeAll(async () => {
      daemon = await startLibvirt();
    });
    afterAll(() => daemon.stop());

    driverConformance('the libvirt driver on the NAT network', async () => {
      const host = await makeLibvirtTestHost(daemon);
      return { ...host, words, open: () => host.open({ hostNetwork: network() }) };
    });
  });
});
