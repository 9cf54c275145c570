import { describe, expect, it } from 'vitest';
import { hostGuardRules, resolversIn } from './host-guard-rules.ts';

const users = { first: 5000, count: 100 };
const rules = (change: Partial<Parameters<typeof hostGuardRules>[0]> = {}) =>
  hostGuardRules({
    ...{ table: 'berth_agent_1', users, besides: [], resolvers: [], ports: [], privateAddresses: 'allow' },
    ...change,
  });

// What the kernel makes of them is tested in host-guard.test.ts.
describe('the rules that keep guests from their host', () => {
  it('speak of the users of guests alone', () => {
    expect(rules()).toContain('meta skuid 5000-5099 goto from_guests');
    expect(rules({ users: { first: 5000, count: 1 } })).toContain('meta skuid 5000 goto');
    expect(rules({ besides: [70, 7000] })).toContain('meta skuid { 5000-5099, 70, 7000 } goto');
  });
  it('name no table but ours, and empty it before they fill it, in one transaction', () => {
    const tables = [...rules().matchAll(/^(?:add |flush )?table (.*?)( \{)?$/gm)].map(([, name]) => name);
    expect(tables).toEqual(['inet berth_agent_1', 'inet berth_agent_1', 'inet berth_agent_1']);
    expect(rules()).not.toMatch(/flush ruleset|delete/);
  });
  it('let names be asked for at the resolvers of the host, each by its family', () => {
    expect(rules({ resolvers: ['127.0.0.53', '::1', '10.0.0.2'] })).toMatch(
      /ip daddr \{ 127\.0\.0\.53, 10\.0\.0\.2 \} .*dport 53 accept\n.*ip6 daddr \{ ::1 \} .*dport 53 accept/,
    );
    expect(rules()).not.toContain('dport 53');
  });
  it('open the ports that the operator names', () => {
    expect(rules({ ports: [5432, 80] })).toContain('tcp dport { 5432, 80 } accept');
    expect(rules()).not.toContain('tcp dport');
  });
  it('leave the host open where they are to, also for users that stand alone', () => {
    const { users: _none, ...state } = { table: 't', users, besides: [7], resolvers: [], ports: [] };
    const text = hostGuardRules({ ...state, privateAddresses: 'allow', hostOpen: true });
    expect(text).toContain('meta skuid { 7 } goto');
    expect(text).toContain('oifname "lo" accept');
  });
  it('close link-local addresses always, and private ones where the operator says so', () => {
    const closed = (text: string, to: string) =>
      [...text.matchAll(/daddr \{ (.*) \} goto (\w+)$/gm)].flatMap((found) =>
        found[2] === to ? found[1]?.split(', ') : [],
      );
    for (const privateAddresses of ['allow', 'deny'] as const)
      expect(closed(rules({ privateAddresses }), 'to_link_local')).toEqual(
        expect.arrayContaining(['169.254.0.0/16', 'fe80::/10']),
      );
    expect(closed(rules(), 'to_private')).toEqual([]);
    expect(closed(rules({ privateAddresses: 'deny' }), 'to_private')).toEqual([
      ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'],
      'fc00::/7',
    ]);
  });
});

it('resolvers are those of resolv.conf, once each, where they are addresses, without their zones', () => {
  const text =
    '# nameserver 1.1.1.1\nnameserver 127.0.0.53\nnameserver\t::1 \nsearch nameserver 9.9.9.9\noptions edns0\n';
  expect(resolversIn(`${text}nameserver fe80::1%eth0\nnameserver 127.0.0.53\nnameserver x\n`)).toEqual([
    '127.0.0.53',
    '::1',
    'fe80::1',
  ]);
});
