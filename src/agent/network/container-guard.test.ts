import { describe, expect, it } from 'vitest';
import { containerGuardRules } from './container-guard.ts';

const subnets = [{ subnet: '10.89.0.0/24', gateway: '10.89.0.1' }];
const rules = (change: { name?: string; subnets?: typeof subnets; ports?: readonly number[] } = {}): string => {
  const { ports = [], ...bridge } = { name: 'berth-c0', subnets, ...change };
  return containerGuardRules({ table: 'berth_agent_1', ports, bridge });
};

describe('the rules of a network of containers', () => {
  it('name its bridge, its addresses, its resolver and the ports that are open', () => {
    const text = rules({ ports: [5432, 80] });
    expect(text).toContain('iifname "berth-c0" goto to_host');
    expect(text).toContain('ip daddr 10.89.0.1 meta l4proto { tcp, udp } th dport 53 accept');
    expect(text).toContain('ip daddr { 10.89.0.0/24 } counter name to_other_guest drop');
    expect(text).toContain('tcp dport { 5432, 80 } accept');
    expect(rules()).not.toContain('tcp dport');
  });

  it.each([
    { name: 'a"; flush ruleset; "' },
    { name: '' },
    { name: 'longer-than-an-interface' },
    { subnets: [] },
    { subnets: [{ subnet: '10.0.0.0/24; flush ruleset', gateway: '10.0.0.1' }] },
    { subnets: [{ subnet: '10.0.0.0/33', gateway: '10.0.0.1' }] },
    { subnets: [{ subnet: '10.0.0.0/24', gateway: '10.0.0.1; flush ruleset' }] },
    { subnets: [...subnets, { subnet: 'fd00::/64', gateway: 'fd00::1' }] },
  ])('are not made of anything else: %j', (change) => {
    expect(() => rules(change)).toThrow('must be a bridge with IPv4 only');
  });
});
