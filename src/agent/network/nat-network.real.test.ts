import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../base/system.ts';
import { runningPid } from './dnsmasq.ts';
import { makeNetworks, type TestAgent, type TestNetworks, whyNoNetworks } from './test-networks.ts';

const reason = whyNoNetworks();

describe.skipIf(reason !== undefined)(`the NAT network${reason ? ` (${reason})` : ''}`, () => {
  let networks: TestNetworks;
  let agent: TestAgent;
  beforeEach(async () => {
    networks = await makeNetworks();
    agent = await networks.agent();
  });
  afterEach(() => networks.dispose());

  it('gives each guest its own address, names, a way out by the host’s address, and its own metadata', async () => {
    expect(await agent.fault()).toBeNull();
    await networks.serve('outside', 80);
    const ann = await networks.guest(agent, 'ann');
    const ben = await networks.guest(agent, 'ben');
    for (const guest of [ann, ben]) {
      expect(await guest.lease()).toMatchObject({
        ok: true,
        text: expect.stringContaining(`leased ${guest.address} 10.77.0.1 10.77.0.1`),
      });
      expect(await guest.get('http://192.0.2.2/')).toEqual({ ok: true, text: 'seen 192.0.2.1' });
      // Asked for nowhere else: dnsmasq itself knows that no other server can know names of private addresses.
      expect((await guest.run('busybox', 'nslookup', '10.77.0.1', '10.77.0.1')).text).toContain('NXDOMAIN');
    }
    expect(ann.address).not.toBe(ben.address);
    expect(await ann.get('http://169.254.169.254/latest/user-data')).toEqual({ ok: true, text: 'secret of ann' });
    expect(await ben.get('http://169.254.169.254/latest/user-data')).toEqual({ ok: true, text: 'secret of ben' });
    expect((await ann.get('http://169.254.169.254/2009-04-04/meta-data/local-ipv4')).text).toBe(ann.address);
    // What the service says goes one hop, and no further into networks behind the guest.
    const seen = (hops: string) => `add rule ip t c ip saddr 169.254.169.254 ip ttl ${hops} counter;`;
    const watch = `add table ip t; add chain ip t c { type filter hook input priority 0; }; ${seen('1')} ${seen('> 1')}`;
    await ann.must('nft', watch);
    const token = await ann.must(
      ...['curl', '--silent', '--fail', '-X', 'PUT', '-H', 'X-aws-ec2-metadata-token-ttl-seconds: 60'],
      'http://169.254.169.254/latest/api/token',
    );
    const withToken = ['-H', `X-aws-ec2-metadata-token: ${token}`];
    expect((await ann.get('http://169.254.169.254/latest/meta-data/hostname', ...withToken)).text).toBe('ann');
    expect((await ben.get('http://169.254.169.254/latest/meta-data/hostname', ...withToken)).ok).toBe(false);
    const hops = await ann.must('nft', 'list', 'table', 'ip', 't');
    expect(hops).toMatch(/ttl 1 counter packets [1-9]/);
    expect(hops).toMatch(/ttl > 1 counter packets 0 /);
  });

  it('lets nobody speak with another’s address, and counts who tries', async () => {
    await networks.serve('outside', 80);
    const ann = await networks.guest(agent, 'ann');
    const ben = await networks.guest(agent, 'ben');
    await ann.lease();
    await ben.lease();
    expect(await networks.counters()).toMatchObject({ spoofed_mac: 0, spoofed_address: 0, spoofed_arp: 0 });

    // The address of the other, with the own card; the gateway's card is known, so that ARP is not what fails.
    await ann.get('http://169.254.169.254/');
    const gatewayCard = /lladdr (\S+)/.exec(await ann.must('ip', 'neigh', 'show', '10.77.0.1'))?.[1] ?? '';
    await ann.must('ip', 'neigh', 'replace', '10.77.0.1', 'lladdr', gatewayCard, 'dev', 'eth0');
    await ann.must('ip', 'address', 'add', `${ben.address}/24`, 'dev', 'eth0');
    const asBen = ['--interface', ben.address];
    expect((await ann.get('http://169.254.169.254/latest/user-data', ...asBen)).ok).toBe(false);
    expect((await ann.get('http://192.0.2.2/', ...asBen)).ok).toBe(false);
    expect((await networks.counters())['spoofed_address']).toBeGreaterThan(1);

    // "I am ben's address."
    await ann.run('busybox', 'arping', '-c', '1', '-w', '1', '-U', '-I', 'eth0', '-s', ben.address, ben.address);
    expect((await networks.counters())['spoofed_arp']).toBeGreaterThan(0);
    await ann.must('ip', 'address', 'del', `${ben.address}/24`, 'dev', 'eth0');

    // The other's card and the other's address: DHCP too.
    await ann.must('ip', 'link', 'set', 'eth0', 'address', ben.macAddress);
    expect((await ann.lease(3)).ok).toBe(false);
    expect((await networks.counters())['spoofed_mac']).toBeGreaterThan(0);

    expect(await ben.get('http://169.254.169.254/latest/user-data')).toEqual({ ok: true, text: 'secret of ben' });
  });

  it('lets only IPv4 in', async () => {
    const ann = await networks.guest(agent, 'ann');
    await ann.must('ip', 'address', 'add', 'fd00::1/64', 'dev', 'eth0', 'nodad');
    expect((await ann.run('busybox', 'ping', '-6', '-c', '1', '-W', '1', 'fd00::2')).ok).toBe(false);
    expect((await networks.counters())['not_ipv4']).toBeGreaterThan(0);
  });

  it('leads to nothing of the host, to no other guest, to nothing denied, and to no link-local address', async () => {
    await networks.serve('host', 7070);
    await networks.serve('outside', 80);
    const ann = await networks.guest(agent, 'ann');
    const ben = await networks.guest(agent, 'ben');
    await ann.lease();
    await ben.lease();
    for (const address of ['10.77.0.1', '192.0.2.1']) {
      const before = (await networks.counters())['to_host'] ?? 0;
      expect((await ann.get(`http://${address}:7070/`)).ok).toBe(false);
      expect((await networks.counters())['to_host']).toBeGreaterThan(before);
    }
    for (const address of ['192.0.2.3', '169.254.10.1']) {
      const before = (await networks.counters())['to_denied'] ?? 0;
      expect((await ann.get(`http://${address}/`)).ok).toBe(false);
      expect((await networks.counters())['to_denied']).toBeGreaterThan(before);
      expect((await networks.host('curl', '--silent', '--fail', `http://${address}/`)).ok).toBe(true); // it is there
    }
    // Two ends that are isolated from one another; also by way of the gateway.
    expect((await ann.run('busybox', 'ping', '-c', '1', '-W', '1', ben.address)).ok).toBe(false);
    await ann.must('ip', 'route', 'replace', `${ben.address}/32`, 'via', '10.77.0.1');
    expect((await ann.run('busybox', 'ping', '-c', '1', '-W', '1', ben.address)).ok).toBe(false);
    // The host itself reaches its guests: that is how their ports are published.
    expect((await networks.host('busybox', 'ping', '-c', '1', '-W', '2', ben.address)).ok).toBe(true);
    // No outside machine gets in by taking the host for a router.
    await networks.outside('ip', 'route', 'add', '10.77.0.0/24', 'via', '192.0.2.1');
    expect((await networks.outside('busybox', 'ping', '-c', '1', '-W', '1', ben.address)).ok).toBe(false);
    expect((await networks.outside('busybox', 'ping', '-c', '1', '-W', '1', '10.77.0.1')).ok).toBe(false);
    expect((await networks.counters())['from_outside']).toBeGreaterThan(1);
  });

  it('is found again by the next agent, with its guests’ addresses and its counters, and no packet of a guest is lost', async () => {
    await networks.serve('outside', 80);
    const ann = await networks.guest(agent, 'ann');
    await ann.lease();
    await ann.must('ip', 'link', 'set', 'eth0', 'address', '02:00:00:00:00:01');
    expect((await ann.lease(3)).ok).toBe(false);
    await ann.must('ip', 'link', 'set', 'eth0', 'address', ann.macAddress);
    expect((await ann.lease()).ok).toBe(true);
    const { spoofed_mac: spoofed } = await networks.counters();
    const dnsmasq = await runningPid(join(networks.directory, 'run'));
    await agent.kill();
    expect((await ann.get('http://192.0.2.2/')).ok).toBe(true); // without any agent
    expect((await ann.lease()).ok).toBe(true);

    agent = await networks.agent();
    await agent.adopt(ann.placed);
    await agent.settle();
    expect(await ann.get('http://192.0.2.2/')).toEqual({ ok: true, text: 'seen 192.0.2.1' });
    expect(await ann.get('http://169.254.169.254/latest/user-data')).toEqual({ ok: true, text: 'secret of ann' });
    expect(await runningPid(join(networks.directory, 'run'))).toBe(dnsmasq);
    expect((await networks.counters())['spoofed_mac']).toBe(spoofed);
    const ben = await networks.guest(agent, 'ben');
    expect((await ben.lease()).text).toContain(ben.address);
  });

  it('is mended when someone takes dnsmasq, the rules or the bridge away', async () => {
    await networks.serve('outside', 80);
    const ann = await networks.guest(agent, 'ann');
    await ann.lease();
    const dnsmasq = (await runningPid(join(networks.directory, 'run'))) ?? 0;
    system.signal(dnsmasq, 'SIGKILL');
    while ((await runningPid(join(networks.directory, 'run'))) !== undefined) await system.turn();
    await agent.settle();
    expect((await ann.lease()).ok).toBe(true);
    // One that was stopped hears no SIGTERM, when it is to be followed by one with another configuration.
    const stopped = (await runningPid(join(networks.directory, 'run'))) ?? 0;
    system.signal(stopped, 'SIGSTOP');
    await rm(join(networks.directory, 'run', 'dnsmasq.conf'));
    await networks.mustHost('nft', 'delete', 'table', 'inet', 'berth');
    await agent.settle();
    expect(await runningPid(join(networks.directory, 'run'))).not.toBe(stopped);
    expect((await ann.lease()).ok).toBe(true);
    // Also its folder, as a cleaner of /run might: the one that runs still is found, and is followed by one with the new files.
    await rm(join(networks.directory, 'run'), { recursive: true });
    await networks.mustHost('nft', 'delete', 'table', 'inet', 'berth');
    await agent.settle();
    expect((await ann.lease()).ok).toBe(true);
    await networks.mustHost('nft', 'flush', 'ruleset');
    await agent.settle();
    expect((await ann.get('http://192.0.2.2/')).ok).toBe(true);
    await networks.mustHost('ip', 'link', 'delete', 'berth0');
    await agent.settle();
    expect((await ann.lease()).ok).toBe(true);
    expect((await ann.get('http://192.0.2.2/')).ok).toBe(true);
    expect((await ann.get('http://169.254.169.254/latest/user-data')).ok).toBe(true);
  });

  it('is cleaned of a guest that goes, and touches nothing that is not its own', async () => {
    await networks.mustHost(
      'nft',
      'add table inet operator; add chain inet operator c; add rule inet operator c accept',
    );
    await networks.mustHost('ip', 'link', 'add', 'name', 'br0', 'type', 'bridge');
    const before = await networks.mustHost('nft', 'list', 'table', 'inet', 'operator');
    const ann = await networks.guest(agent, 'ann');
    const ben = await networks.guest(agent, 'ben');
    expect(await networks.mustHost('nft', 'list', 'ruleset')).toContain(ann.tap);
    await agent.release(ann.instanceId);
    await agent.release(ann.instanceId); // a second time is harmless
    const rules = await networks.mustHost('nft', 'list', 'ruleset');
    expect(rules).not.toContain(ann.tap);
    expect(rules).toContain(ben.tap);
    expect(await networks.mustHost('ip', '-brief', 'link', 'show')).not.toContain(ann.tap);
    expect(await networks.mustHost('nft', 'list', 'table', 'inet', 'operator')).toBe(before);
    expect(await networks.mustHost('ip', '-brief', 'link', 'show', 'dev', 'br0')).toContain('br0');
    expect((await ben.lease()).ok).toBe(true);
    // Someone who takes ann's address after her has it alone.
    expect(await agent.reserve({ instanceId: ann.instanceId, uuid: 'another', directory: '' })).toMatchObject({
      address: ann.address,
    });
  });

  it.each([
    [
      'a bridge that Berth did not make',
      [['ip', 'link', 'add', 'name', 'berth0', 'type', 'bridge']],
      'not made by Berth',
    ],
    [
      'the bridge of another agent',
      [
        ['ip', 'link', 'add', 'name', 'berth0', 'type', 'bridge'],
        ['ip', 'link', 'set', 'dev', 'berth0', 'alias', 'berth /elsewhere'],
      ],
      'is of another agent (berth /elsewhere)',
    ],
    [
      'a subnet that the host is in already',
      [['ip', 'address', 'add', '10.77.0.9/24', 'dev', 'up0']],
      'natSubnet 10.77.0.0/24 is in use: up0 has 10.77.0.9/24',
    ],
  ])('refuses %s, and leaves it alone', async (_what, commands, words) => {
    for (const command of commands) await networks.mustHost(...command);
    // The kernel looks for a second or two whether anyone else has an IPv6 address: that it is done is no change of ours.
    const links = async () =>
      (await networks.mustHost('ip', '-details', 'address', 'show')).replaceAll(' tentative', '');
    const before = await links();
    expect(await agent.fault()).toContain(words);
    const folder = join(networks.directory, 'x');
    await mkdir(folder);
    const network = await agent.reserve({ instanceId: 'inst_x', uuid: 'x', directory: folder });
    await expect(agent.attach({ instanceId: 'inst_x', directory: folder, network })).rejects.toThrow(words);
    expect(await links()).toBe(before);
    expect(await networks.mustHost('nft', 'list', 'ruleset')).toBe('');
  });

  it('refuses the guest for whom no address is left, until another has gone', async () => {
    const small = await networks.agent({ subnet: '10.77.0.0/29' });
    const names = ['ann', 'ben', 'cat', 'dan', 'eve'];
    const guests = [];
    for (const name of names) guests.push(await networks.guest(small, name));
    for (const guest of guests)
      expect((await guest.lease()).text).toContain(`leased ${guest.address} 10.77.0.1 10.77.0.1`);
    expect(new Set(guests.map(({ address }) => address)).size).toBe(5);
    // Without its counters: what guests say unasked is counted all the time.
    const rules = () => networks.mustHost('nft', '--stateless', 'list', 'ruleset');
    const before = await rules();
    await expect(networks.guest(small, 'fay')).rejects.toThrow('all 5 of 10.77.0.0/29 are taken');
    expect(await rules()).toBe(before);
    const [ann, ben] = guests;
    await small.release(ann?.instanceId ?? '');
    const gil = await networks.guest(small, 'gil');
    expect(gil.address).toBe(ann?.address);
    expect((await gil.lease()).text).toContain(`leased ${gil.address}`);
    expect(await ben?.get('http://169.254.169.254/latest/user-data')).toEqual({ ok: true, text: 'secret of ben' });
    expect(await gil.get('http://169.254.169.254/latest/user-data')).toEqual({ ok: true, text: 'secret of gil' });
  });

  it('is taken away when its agent was refused for good, unless a guest runs', async () => {
    const ann = await networks.guest(agent, 'ann');
    await agent.leave();
    expect(await networks.mustHost('nft', 'list', 'tables')).toContain('table bridge berth');
    expect((await ann.lease()).ok).toBe(true);
    await ann.must('ip', 'link', 'set', 'eth0', 'down'); // it has ended; its tap is there until it is removed
    await agent.leave();
    await agent.leave();
    expect(await networks.mustHost('nft', 'list', 'ruleset')).toBe('');
    expect((await networks.host('ip', 'link', 'show', 'berth0')).ok).toBe(false);
    expect(await runningPid(join(networks.directory, 'run'))).toBeUndefined();
  });

  it('connects guests that come at once', async () => {
    const places = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const instanceId = `inst_${i}`;
        const directory = networks.directory;
        return { instanceId, directory, network: await agent.reserve({ instanceId, uuid: String(i), directory }) };
      }),
    );
    await Promise.all(places.map((place) => agent.attach(place)));
    const rules = await networks.mustHost('nft', 'list', 'set', 'bridge', 'berth', 'places');
    for (const { network } of places) expect(rules).toContain(network.macAddress);
    expect(new Set(places.map(({ network }) => network.kind === 'nat' && network.address)).size).toBe(8);
  });
});

describe.skipIf(reason !== undefined)(`a bridge of the operator’s${reason ? ` (${reason})` : ''}`, () => {
  let networks: TestNetworks;
  beforeEach(async () => {
    networks = await makeNetworks();
  });
  afterEach(() => networks.dispose());

  it('gets a tap for each guest, and nothing else', async () => {
    await networks.mustHost('ip', 'link', 'add', 'name', 'br0', 'type', 'bridge');
    const agent = await networks.agent({ bridge: 'br0' });
    expect(await agent.fault()).toBeNull();
    const network = await agent.reserve({ instanceId: 'inst_x', uuid: 'x', directory: '' });
    expect(network).toMatchObject({ kind: 'bridge', bridge: 'br0' });
    await agent.attach({ instanceId: 'inst_x', directory: '', network });
    expect(await networks.mustHost('ip', '-brief', 'link', 'show', 'master', 'br0')).toContain(network.tap);
    expect(await networks.mustHost('nft', 'list', 'ruleset')).toBe('');
    await agent.release('inst_x');
    expect(await networks.mustHost('ip', '-brief', 'link', 'show', 'master', 'br0')).toBe('');
    expect(await networks.mustHost('ip', '-brief', 'link', 'show', 'dev', 'br0')).toContain('br0');
  });
  it('is asked for when there is none', async () => {
    expect(await (await networks.agent({ bridge: 'br9' })).fault()).toContain('no bridge "br9"');
    expect(await (await networks.agent({ bridge: 'up0' })).fault()).toContain('"up0" is no bridge');
  });
});
