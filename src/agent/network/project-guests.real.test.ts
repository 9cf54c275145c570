// Guests of one project on one NAT network reach each other, and those of other projects do not: real bridge and rules, namespaces for guests.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../base/system.ts';
import { runningPid } from './dnsmasq.ts';
import { makeNetworks, type TestAgent, type TestNetworks, whyNoNetworks } from './test-networks.ts';

const reason = whyNoNetworks();

describe.skipIf(reason !== undefined)(`guests of projects${reason ? ` (${reason})` : ''}`, () => {
  let networks: TestNetworks;
  let agent: TestAgent;
  type TestGuest = Awaited<ReturnType<TestNetworks['guest']>>;
  beforeEach(async () => {
    networks = await makeNetworks();
    agent = await networks.agent();
  });
  afterEach(() => networks.dispose());

  const leased = async (name: string, project?: string): Promise<TestGuest> => {
    const guest = await networks.guest(agent, name, project);
    await guest.lease();
    return guest;
  };
  const reaches = async (from: TestGuest, to: { readonly address: string }): Promise<boolean> =>
    (await from.run('busybox', 'ping', '-c', '1', '-W', '1', to.address)).ok;

  it('reach those of their own project alone, also by way of the gateway, with IPv6, and when the agent came back', async () => {
    const [ann, ben] = [await leased('ann', 'red'), await leased('ben', 'red')];
    const [cat, dan, eve] = [await leased('cat', 'blue'), await leased('dan'), await leased('eve')];
    const strangers: readonly (readonly [TestGuest, TestGuest])[] = [
      [ann, cat],
      [cat, ann],
      [ann, dan],
      [dan, ann],
      [dan, eve],
    ];
    const expectApart = async (): Promise<void> => {
      expect(await reaches(ann, ben)).toBe(true);
      expect(await reaches(ben, ann)).toBe(true);
      const reached = await Promise.all(strangers.map(([from, to]) => reaches(from, to)));
      expect(reached).toEqual(strangers.map(() => false));
    };
    await expectApart();
    expect((await networks.counters())['to_other_guest']).toBeGreaterThan(0);

    // Frames to the other's card, and packets by way of the gateway.
    await ann.must('ip', 'neigh', 'replace', cat.address, 'lladdr', cat.macAddress, 'dev', 'eth0');
    await cat.must('ip', 'neigh', 'replace', ann.address, 'lladdr', ann.macAddress, 'dev', 'eth0');
    expect(await reaches(ann, cat)).toBe(false);
    for (const to of [ben, cat]) await ann.must('ip', 'route', 'replace', `${to.address}/32`, 'via', '10.77.0.1');
    expect(await reaches(ann, cat)).toBe(false);
    expect(await reaches(ann, ben)).toBe(true);
    for (const to of [ben, cat]) await ann.must('ip', 'route', 'delete', `${to.address}/32`);

    // No guest has IPv6: not within a project, and not across.
    for (const [i, each] of [ann, ben, cat].entries())
      await each.run('ip', 'address', 'add', `fd00::${i + 1}/64`, 'dev', 'eth0', 'nodad');
    for (const address of ['fd00::2', 'fd00::3'])
      expect((await ann.run('busybox', 'ping', '-6', '-c', '1', '-W', '1', address)).ok).toBe(false);

    await agent.kill();
    expect(await reaches(ann, ben)).toBe(true); // without any agent
    agent = await networks.agent();
    for (const each of [ann, ben, cat, dan, eve]) await agent.adopt(each.placed);
    await agent.settle();
    await expectApart();
    // And when somebody took all rules away.
    await networks.mustHost('nft', 'flush', 'ruleset');
    await agent.settle();
    await expectApart();
  });

  it('find those of their own project by name, those of others not, and go on when the agent comes back', async () => {
    const [ann, ben] = [await leased('ann', 'red'), await leased('ben', 'red')];
    const [cat, dan] = [await leased('cat', 'blue'), await leased('dan')];
    const found = async (from: TestGuest, name: string): Promise<string | undefined> => {
      const { text } = await from.run('busybox', 'nslookup', '-type=a', name, '10.77.0.1');
      return /Name:\s+\S+\s+Address(?: 1)?: (\S+)/.exec(text)?.[1];
    };
    const names = ['ann', 'ben', 'ben.red', 'cat', 'cat.blue', 'dan'];
    const expectNames = async (): Promise<void> => {
      const { address } = ben;
      expect(await Promise.all(names.map((name) => found(ann, name)))).toEqual([
        ...[ann.address, address, address],
        ...[undefined, undefined, undefined],
      ]);
      expect(await Promise.all(['ann', 'cat', 'cat.blue'].map((name) => found(cat, name)))).toEqual([
        undefined,
        cat.address,
        cat.address,
      ]);
      expect(await found(dan, 'ben')).toBeUndefined();
    };
    await expect.poll(() => found(ann, 'ben')).toBe(ben.address); // a server reads its names again in its own time
    await expectNames();
    // The server of another project is not asked past the rules.
    for (const port of ['10053', '10054']) {
      const { to_host: before = 0 } = await networks.counters();
      await cat.run('busybox', 'nc', '-w', '1', '10.77.0.1', port);
      expect((await networks.counters())['to_host']).toBeGreaterThan(before);
    }

    await agent.kill();
    await expectNames(); // without any agent
    agent = await networks.agent();
    for (const each of [ann, ben, cat, dan]) await agent.adopt(each.placed);
    await agent.settle();
    await expectNames();
    const [folder = ''] = (await readdir(join(networks.directory, 'run'))).filter((name) => name.startsWith('names-'));
    const server = (await runningPid(join(networks.directory, 'run', folder))) ?? 0;
    system.signal(server, 'SIGKILL');
    while ((await runningPid(join(networks.directory, 'run', folder))) !== undefined) await system.turn();
    await agent.settle();
    await expectNames();

    await agent.release(ben.instanceId);
    await expect.poll(() => found(ann, 'ben')).toBeUndefined();
    for (const each of [ann, cat]) await agent.release(each.instanceId);
    expect((await readdir(join(networks.directory, 'run'))).filter((name) => name.startsWith('names-'))).toEqual([]);
  });

  it('are given no address by one another', async () => {
    const [ann, ben] = [await leased('ann', 'red'), await leased('ben', 'red')];
    const before = (await networks.counters())['to_other_guest'] ?? 0;
    const offer = `const s = require('node:dgram').createSocket('udp4'); s.bind(67, () => s.send('x', 68, '${ben.address}', () => s.close()))`;
    await ann.must(system.nodePath(), '-e', offer);
    expect(await reaches(ann, ben)).toBe(true); // what was sent before has arrived or was dropped
    expect((await networks.counters())['to_other_guest']).toBeGreaterThan(before);
  });
});
