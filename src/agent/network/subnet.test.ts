import { describe, expect, it } from 'vitest';
import { contains, gatewayOf, netmaskOf, parseNatSubnet, parseSubnet, toAddress, toNumber } from './subnet.ts';

describe('a subnet', () => {
  it.each([
    ['10.77.0.0/16', { first: toNumber('10.77.0.0'), prefix: 16, size: 65_536 }],
    ['192.168.200.248/29', { first: toNumber('192.168.200.248'), prefix: 29, size: 8 }],
    ['0.0.0.0/0', { first: 0, prefix: 0, size: 2 ** 32 }],
    ['255.255.255.255/32', { first: 2 ** 32 - 1, prefix: 32, size: 1 }],
    ['10.77.0.1/16', undefined],
    ['10.77.0.0', undefined],
    ['10.77.0.0/33', undefined],
    ['10.77.0.0/16/8', undefined],
    ['10.77.0/16', undefined],
    ['fd00::/16', undefined],
    ['10.77.0.0/ 16', undefined],
    ['', undefined],
  ])('%j is read as %j', (text, subnet) => expect(parseSubnet(text)).toEqual(subnet));
  it.each(['10.0.0.0/15', '10.0.0.0/30', '10.0.0.0/8'])('%s is not for guests of one host', (text) =>
    expect(parseNatSubnet(text)).toBeUndefined(),
  );
  it('has a gateway, a mask and bounds', () => {
    const subnet = parseSubnet('10.77.4.0/22');
    if (subnet === undefined) throw new Error('no subnet');
    expect([gatewayOf(subnet), netmaskOf(subnet)]).toEqual(['10.77.4.1', '255.255.252.0']);
    expect(['10.77.3.255', '10.77.4.0', '10.77.7.255', '10.77.8.0'].map((each) => contains(subnet, each))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(toAddress(toNumber('203.0.113.9'))).toBe('203.0.113.9');
  });
});
