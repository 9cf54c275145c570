// Agents that die at every step of connecting a guest to the NAT network of their host and of taking it from there: bridge, tap, dnsmasq, rules. The network is
// made where the agent is, so this file runs itself once more in a network namespace of its own.

import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../../base/clock.ts';
import { silentLogger } from '../../base/log.ts';
import { environment, randomSecret, system, systemClock } from '../../base/system.ts';
import { untilGuest } from '../drivers/conformance.ts';
import type { Driver } from '../drivers/driver.ts';
import { makeQemuTestHost, testSpec, testUsers } from '../drivers/qemu/test-host.ts';
import { qmpTalk } from '../drivers/test-engine-talks.ts';
import { atEveryStep } from '../test-every-step.ts';
import type { Life } from '../test-life.ts';
import { dnsmasqFiles } from './dnsmasq-config.ts';
import { tapName } from './guest-network.ts';
import { natBridge } from './nat-rules.ts';
import { createNatNetwork } from './nat-network.ts';
import { whyNoNetworks } from './test-networks.ts';

const mark = 'BERTH_TEST_STEPS_IN_OWN_NETWORK';
const inside = environment()[mark] !== undefined;
const never = new AbortController().signal;

describe.skipIf(inside)('outside of its namespace', () => {
  const reason = whyNoNetworks();
  it.skipIf(reason !== undefined)(
    `an agent may die at any step of what it does to the NAT network${reason ? ` (${reason})` : ''}`,
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

describe.runIf(inside)('an agent that dies at any step of what it does to the NAT network', () => {
  const spec = testSpec();
  const { instanceId } = spec;
  let runDirectory: string;
  beforeAll(async () => {
    runDirectory = await mkdtemp(join(tmpdir(), 'berth-nat-'));
    await chmod(runDirectory, 0o755); // as /run is: dnsmasq is another user
  });
  afterAll(async () => {
    for (const pid of await servers()) system.signal(pid, 'SIGKILL');
    await rm(runDirectory, { recursive: true });
  });

  const tool = (program: string, ...words: string[]): string => {
    const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${program} ${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  const servers = async (): Promise<number[]> => {
    const found: number[] = [];
    for (const entry of await readdir('/proc')) {
      if (!/^[0-9]+$/.test(entry)) continue;
      const commandLine = await readFile(`/proc/${entry}/cmdline`, 'utf8').catch(() => ''); // gone
      if (commandLine.startsWith(`dnsmasq\0--conf-file=${runDirectory}/`)) found.push(Number(entry));
    }
    return found;
  };
  /** Those that are given out: it remembers others. */
  const leases = async (): Promise<string[]> => {
    const lines = await readFile(join(runDirectory, dnsmasqFiles.hosts), 'utf8').catch(() => '');
    return lines.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };
  const taps = (): string[] =>
    tool('ip', '-json', 'link', 'show', 'type', 'tun')
      .match(/"ifname":"[^"]+"/g)
      ?.map(String) ?? [];
  /** As if the host had just started. */
  const beginAnew = async (): Promise<void> => {
    for (const pid of await servers()) system.signal(pid, 'SIGKILL');
    while ((await servers()).length > 0) await system.turn();
    for (const { ifname } of JSON.parse(tool('ip', '-json', 'link', 'show', 'type', 'bridge')) as { ifname?: string }[])
      if (ifname !== undefined) tool('ip', 'link', 'delete', ifname);
    tool('nft', 'flush', 'ruleset');
    await writeFile('/proc/sys/net/ipv4/ip_forward', '0');
    for (const name of await readdir(runDirectory)) await rm(join(runDirectory, name));
  };
  const network = (clock: Clock) =>
    createNatNetwork({
      subnet: '10.77.0.0/24',
      denied: [],
      metadataTokens: 'optional',
      owner: runDirectory,
      runDirectory,
      clock,
      log: silentLogger,
      randomSecret,
    });

  /** What stands between a guest and the world: whole with one guest, or cleared of it. */
  const expectNetwork = async (guests: 0 | 1): Promise<void> => {
    expect(taps()).toHaveLength(guests);
    const links = tool('ip', '-brief', 'link', 'show', 'master', natBridge);
    expect(links.split('\n').filter((line) => line !== '')).toHaveLength(guests);
    expect(tool('ip', '-json', 'link', 'show', 'type', 'bridge').match(/"ifname"/g)).toHaveLength(1);
    expect(tool('nft', 'list', 'set', 'bridge', 'berth', 'places').match(/10\.77\.0\.\d+/g) ?? []).toHaveLength(guests);
    expect(await leases()).toHaveLength(guests);
    expect(await servers()).toHaveLength(1);
    expect((await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')).trim()).toBe('1');
  };

  const wishes = ['create', 'remove'] as const;
  const carryOut = async (driver: Driver, wish: (typeof wishes)[number]): Promise<void> => {
    if (wish === 'remove') return driver.remove(instanceId);
    await driver.create(spec, never);
    await untilGuest(driver, instanceId, (seen) => seen?.ready === true);
  };
  /** `wanted`: whether the instance still is when the next agent comes. */
  const attempt = async (life: Life, wanted: boolean): Promise<readonly string[]> => {
    await beginAnew();
    const host = await makeQemuTestHost();
    const open = (clock: Clock): Driver => host.open({ ...testUsers, clock, network: network(clock) });
    let wish: (typeof wishes)[number] = 'create';
    await life.live(async () => {
      const driver = open(life.clock);
      await driver.recover();
      for (wish of wanted ? wishes : wishes.slice(0, 1)) await carryOut(driver, wish);
    });
    await life.kill();
    const ran = await host.process(instanceId);
    const next = open(systemClock);
    try {
      await next.recover();
      if (ran !== null && wish === 'create') {
        expect(next.guests()).toMatchObject([{ state: 'running' }]);
        await expectNetwork(1);
      }
      if (wanted && wish === 'create') {
        await carryOut(next, 'create');
        if (ran !== null) expect(await host.process(instanceId)).toEqual(ran);
        await expectNetwork(1);
      }
      await next.remove(instanceId);
      expect(await host.traces(instanceId)).toEqual([]);
      expect(taps()).toEqual([]);
      if (ran !== null || wanted) await expectNetwork(0);
      // Where there was nothing yet there is nothing to clear.
      expect(tool('nft', 'list', 'ruleset')).not.toContain(tapName('nat', instanceId));
      expect(await leases()).toEqual([]);
    } finally {
      await next.remove(instanceId);
      await next.close();
      await host.dispose();
    }
    return life.steps;
  };

  it.each([
    ['is followed by one that connects it, or ends what was begun', true],
    ['is followed by one that takes away what nobody wants any more', false],
  ])(
    '%s',
    async (_, wanted) => {
      const steps = await atEveryStep(
        async (life) => {
          await attempt(life, wanted);
        },
        // What is no part of the network is tried without it.
        {
          talks: [qmpTalk],
          alike: /^(?!run (ip|bridge|nft|dnsmasq)|start |signal |.*(rules\.nft|dnsmasq\.|dhcp-hosts|ip_forward))/,
        },
      );
      for (const each of [/^run ip .*bridge/, /^run ip .*tuntap/, /^run nft/, /^run dnsmasq/, /^start perl/])
        expect(steps).toContainEqual(expect.stringMatching(each));
    },
    600_000,
  );
});
