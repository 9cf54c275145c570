import { describe, expect, it } from 'vitest';
import type { Host } from '../../../api/resources/host.ts';
import { testHost, testInstance } from '../../../core/testing.ts';
import type { Allocation } from '../../../core/state/records.ts';
import { testHistory } from '../../test-history.ts';
import { outsideChecker } from './outside.ts';

const foreign = { VCPU: 2, MEMORY_MB: 0 };
const node = {
  ...{ name: 'node-1', capacity: { VCPU: 4, MEMORY_MB: 4096 }, foreign, pool: undefined },
  ...{ dedicated: false, awayUntilMs: 0 },
};

const scene = (isExact = true) =>
  testHistory((facts) =>
    outsideChecker({
      ...facts,
      nodes: { node: (name) => (name === 'node-1' ? node : undefined), names: ['node-1'], isExact },
    }),
  );

function outside(name = 'node-1', reserved = { VCPU: 2, MEMORY_MB: 0 }): Host {
  const [host] = testHost(name);
  const origin = { inventory: 'nodes', usage: foreign, reportedAtMs: 0 };
  return { ...host, status: { ...host.status, reserved, outside: origin } };
}

const held = (id: string, VCPU: number, kind: { readonly kind?: 'task' } = { kind: 'task' }): Allocation => ({
  kind: 'allocation',
  host: 'node-1',
  consumer: { ...kind, id, incarnation: 1, project: 'default', name: id },
  amounts: { p: { VCPU } },
  driver: '',
});

describe('a host of another system', () => {
  it.each([
    ['has room besides what others use', true, [2], undefined],
    ['is not held beyond that', true, [2, 1], /tasks hold 3 VCPU on node-1, others use 2, and it has 4/],
    ['is held beyond that where clocks differ', false, [2, 1], undefined],
    ['is never held beyond what it has', false, [2, 3], /tasks hold 5 VCPU/],
  ])('%s', (_, isExact, claims, fault) => {
    const { commit } = scene(isExact);
    commit(outside());
    const last = claims.map((claim, i) => commit(held(`t${i}`, claim))).at(-1);
    expect(last).toEqual(fault === undefined ? undefined : expect.stringMatching(fault));
  });

  it('takes no instance of ours', () => {
    const { commit } = scene();
    commit(outside());
    const bound = { ...testInstance('a'), status: { ...testInstance('a').status, host: 'node-1' } };
    expect(commit(bound)).toMatch(/bound to node-1, a host of another system/);
    expect(commit(held('b', 1, {}))).toMatch(/instance b holds room on node-1/);
  });

  it('stays while room is held there', () => {
    const { commit } = scene();
    commit(outside());
    commit(held('t', 1));
    expect(commit('hosts/node-1')).toMatch(/removed while t held room/);
  });
});

describe('at rest', () => {
  it.each<[string, Host[], RegExp[]]>([
    ['what is in no inventory is gone', [outside(), outside('node-2')], [/node-1 is a host/, /node-2 is a host/]],
    ['hosts without an inventory of ours are left alone', [testHost('node-3')[0]], []],
  ])('%s', (_, hosts, faults) => {
    const { commit, unrest } = scene();
    for (const host of hosts) commit(host);
    expect(unrest()).toEqual(faults.map((fault) => expect.stringMatching(fault)));
  });
});
