import { describe, expect, it } from 'vitest';
import {
  bridgeCommands,
  bridgeFault,
  type Command,
  type Link,
  readLinks,
  removeCommands,
  tapCommands,
} from './links.ts';
import { parseSubnet, type Subnet } from './subnet.ts';

const subnet = parseSubnet('10.77.0.0/24') as Subnet;
const wanted = { subnet, mark: 'berth /var/lib/berth', macAddress: '02:62:00:00:00:01' };
const link = (change: Partial<Link>): Link => ({
  index: 7,
  name: 'eth0',
  bridge: false,
  master: undefined,
  alias: undefined,
  carrier: false,
  addresses: [],
  ...change,
});
const own = link({
  name: 'berth0',
  bridge: true,
  alias: wanted.mark,
  addresses: [{ address: '10.77.0.1', prefix: 24 }],
});
const words = (commands: readonly Command[]) => commands.map((each) => [each.program, ...each.arguments].join(' '));

describe('the host’s links', () => {
  it('are read from what ip says', () => {
    const said = `[{"ifindex":7,"ifname":"berth0","ifalias":"berth x","linkinfo":{"info_kind":"bridge"},"addr_info":[{"family":"inet","local":"10.77.0.1","prefixlen":24},{"family":"inet6","local":"fe80::1","prefixlen":64}]},
      {"ifindex":7,"ifname":"bt1","flags":["BROADCAST","UP","LOWER_UP"],"master":"berth0","linkinfo":{"info_kind":"tun"},"addr_info":[{}]}]`;
    expect(readLinks(said)).toEqual([
      {
        ...link({ name: 'berth0', bridge: true, alias: 'berth x' }),
        addresses: [{ address: '10.77.0.1', prefix: 24 }],
      },
      link({ name: 'bt1', master: 'berth0', carrier: true }),
    ]);
    expect(() => readLinks('{}')).toThrow('something else than links');
  });
  it('get a bridge whose mark is on it before its name is', () => {
    expect(words(bridgeCommands([], wanted))).toEqual([
      'ip link add name berth0-new address 02:62:00:00:00:01 type bridge',
      'ip link set dev berth0-new addrgenmode none',
      'ip link set dev berth0-new alias berth /var/lib/berth',
      'ip link set dev berth0-new name berth0',
      'ip address replace 10.77.0.1/24 dev berth0',
      'ip link set dev berth0 up',
    ]);
  });
  it('lose what an agent left that died in between', () => {
    expect(words(bridgeCommands([link({ name: 'berth0-new' })], wanted))[0]).toBe('ip link delete berth0-new');
  });
  it('keep a bridge that is there, with the address that it should have', () => {
    const other = { ...own, addresses: [{ address: '10.9.0.1', prefix: 16 }] };
    expect(words(bridgeCommands([other], wanted))).toEqual([
      'ip address delete 10.9.0.1/16 dev berth0',
      'ip address replace 10.77.0.1/24 dev berth0',
      'ip link set dev berth0 up',
    ]);
    expect(words(bridgeCommands([own], wanted))).toHaveLength(2);
  });
  it.each([
    ['nothing', [], undefined],
    ['our own bridge', [own], undefined],
    ['a bridge without a mark', [{ ...own, alias: undefined }], 'was not made by Berth'],
    ['another agent’s', [{ ...own, alias: 'berth /other' }], 'is of another agent (berth /other)'],
    ['an address of the subnet elsewhere', [link({ addresses: [{ address: '10.77.0.200', prefix: 8 }] })], 'is in use'],
    ['an address beside it', [link({ addresses: [{ address: '10.77.1.1', prefix: 24 }] })], undefined],
  ])('with %s: %s', (_what, links, fault) => {
    const found = bridgeFault(links, wanted);
    if (fault === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(fault);
  });
  it('get a tap, once', () => {
    const tap = { tap: 'bt1', bridge: 'berth0' };
    expect(words(tapCommands([], tap))).toEqual([
      'ip tuntap add dev bt1 mode tap',
      'ip link set dev bt1 addrgenmode none',
      'ip link set dev bt1 master berth0',
      'ip link set dev bt1 up',
    ]);
    expect(words(tapCommands([link({ name: 'bt1', master: 'berth0' })], tap))).toEqual(['ip link set dev bt1 up']);
    expect(words(removeCommands([link({ name: 'bt1' })], 'bt1'))).toEqual(['ip link delete bt1']);
    expect(removeCommands([link({ name: 'bt2' })], 'bt1')).toEqual([]);
  });
});
