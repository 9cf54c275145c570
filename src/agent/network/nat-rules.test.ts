import { describe, expect, it } from 'vitest';
import { dhcpHosts, dnsmasqConfig, leasesIn } from './dnsmasq-config.ts';
import { natRules } from './nat-rules.ts';
import { parseSubnet, type Subnet } from './subnet.ts';

const subnet = parseSubnet('10.77.0.0/24') as Subnet;
const guests = [
  { tap: 'bt1', macAddress: '02:00:00:00:00:01', address: '10.77.0.5' },
  { tap: 'bt2', macAddress: '02:00:00:00:00:02', address: '10.77.0.6' },
];
const rules = (change: Partial<Parameters<typeof natRules>[0]> = {}) =>
  natRules({ subnet, metadataPort: 4444, denied: ['10.0.0.0/8'], nameServers: [], guests, ...change });

// What the kernel makes of them is tested in nat-network.test.ts.
describe('the rules of the NAT network', () => {
  it('pin card and address to each tap', () => {
    expect(rules()).toContain('add element bridge berth cards { "bt1" . 02:00:00:00:00:01 }');
    expect(rules()).toContain('add element bridge berth places { "bt2" . 02:00:00:00:00:02 . 10.77.0.6 }');
  });
  it('name no table but ours, and empty it before they fill it, in one transaction', () => {
    const tables = [...rules().matchAll(/^(?:add |flush )?table (.*?)( \{)?$/gm)].map(([, name]) => name);
    expect(new Set(tables)).toEqual(new Set(['bridge berth', 'inet berth']));
    expect(rules()).not.toMatch(/flush ruleset|delete/);
    expect(rules()).toMatch(/flush set bridge berth cards[^]*add element bridge berth cards/);
  });
  it('deny link-local addresses whatever is denied besides', () => {
    expect(rules()).toContain('add element inet berth denied { 10.0.0.0/8 }');
    expect(rules({ denied: [] })).toContain('add element inet berth denied { 169.254.0.0/16 }');
  });
  it('number the projects of guests for the length of one chain, and leave out who has none', () => {
    const guest = (number: number, project?: string) => ({
      ...{ tap: `bt${number}`, macAddress: `02:00:00:00:00:0${number}`, address: `10.77.0.${number}` },
      ...(project === undefined ? {} : { project }),
    });
    const text = rules({ guests: [guest(5, 'b'), guest(6, 'a'), guest(7, 'b'), guest(8)] });
    const elements = (of: string) =>
      [...text.matchAll(new RegExp(`add element ${of} \\{ (.*) \\}`, 'g'))].map(([, each]) => each);
    expect(elements('bridge berth projects')).toEqual(['"bt5" : 2', '"bt6" : 1', '"bt7" : 2']);
    expect(elements('bridge berth members')).toEqual(['2 . "bt5"', '1 . "bt6"', '2 . "bt7"']);
    expect(elements('inet berth members')).toEqual(['2 . 10.77.0.5', '1 . 10.77.0.6', '2 . 10.77.0.7']);
    expect(text.match(/meta mark set 0/g)).toHaveLength(2);
  });
  it('stand without guests too', () => {
    expect(rules({ guests: [] })).not.toContain('add element bridge');
  });
});

describe('what dnsmasq is told', () => {
  it('is one address for each card, and none for others', () => {
    const listed = '02:00:00:00:00:01,10.77.0.5\n02:00:00:00:00:02,10.77.0.6\n';
    expect(dhcpHosts(guests)).toBe(listed);
    // Who has gone is remembered, and who had another's address: as often as it is written, once.
    const gone = [
      { macAddress: '02:00:00:00:00:09', address: '10.77.0.5' },
      { macAddress: '02:00:00:00:00:0a', address: '10.77.0.9' },
    ];
    const before = dhcpHosts(gone);
    const text = `${listed}#02:00:00:00:00:09,10.77.0.5\n#02:00:00:00:00:0a,10.77.0.9\n`;
    expect(dhcpHosts(guests, leasesIn(before))).toBe(text);
    expect(dhcpHosts(guests, leasesIn(text))).toBe(text);
    expect(dnsmasqConfig({ subnet, directory: '/run/x', linkIndex: 7 })).toContain(
      'dhcp-range=10.77.0.0,static,255.255.255.0,12h\n',
    );
  });
  it('keeps it to the bridge, and from the host’s own names', () => {
    for (const line of ['interface=berth0', 'except-interface=lo', 'bind-interfaces', 'no-hosts'])
      expect(dnsmasqConfig({ subnet, directory: '/run/x', linkIndex: 7 }).split('\n')).toContain(line);
  });
});
