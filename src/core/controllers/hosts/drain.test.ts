import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import { seededPrng } from '../../../base/prng.ts';
import { cancelDrain } from '../../operations/plans/host-drain.ts';
import { isDraining } from '../../state/conditions.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testWorkloadSpec } from '../../testing.ts';
import { boundsOf } from '../../workloads/pass.ts';
import { options, World } from './test-drained-fleet.ts';

describe('a workload on a drained host', () => {
  it('is replaced elsewhere, and stays available', () => {
    const world = new World();
    world.workload({ replicas: 6, strategy: { ...testWorkloadSpec().strategy, maxSurge: 1, maxUnavailable: 0 } });
    const there = world.on('a').length;
    expect(there).toBeGreaterThan(0);
    expect(world.plan().guests.map(({ action }) => action)).toEqual(Array.from({ length: there }, () => 'replace'));
    world.apply();
    world.settle(() => expect(world.readyCount()).toBeGreaterThanOrEqual(6));
    expect(world.drain()?.phase).toBe('Drained');
    expect(world.on('a')).toEqual([]);
    expect(world.readyCount()).toBe(6);
  });

  it('has one copy fewer when it has one per host, and gets it back when the host is open', () => {
    const world = new World();
    world.workload({ perHost: true, replicas: 1 });
    expect(world.instances()).toHaveLength(3);
    world.apply();
    world.settle();
    expect([world.drain()?.phase, world.on('a').length, world.instances().length]).toEqual(['Drained', 0, 2]);
    commitPlan(world.cache, cancelDrain(world.cache, 'a', world.ctx()).plan);
    world.settle();
    expect(world.on('a')).toHaveLength(1);
  });
});

describe('a copy of a workload that no other host takes', () => {
  const strategy = { ...testWorkloadSpec().strategy, maxSurge: 1, maxUnavailable: 0 };
  const onA = testWorkloadSpec({}, { placement: { hostLabels: { host: 'a' } } });
  const scene = (): World => {
    const world = new World();
    world.workload({ ...onA, replicas: 2, strategy });
    world.apply({ stopOthers: true });
    world.settle();
    return world;
  };
  const phases = (world: World) => world.on('a').map(({ status }) => status.phase);

  it('is stopped, and another one waits for room', () => {
    const world = scene();
    expect([world.drain()?.phase, phases(world)]).toEqual(['Drained', ['Stopped', 'Stopped']]);
    expect(world.instances().filter(({ status }) => status.host === undefined)).toHaveLength(1);
  });

  it('is replaced when the drain is cancelled', () => {
    const world = scene();
    commitPlan(world.cache, cancelDrain(world.cache, 'a', world.ctx()).plan);
    world.settle();
    expect(phases(world)).toEqual(['Running', 'Running']);
  });

  it('is kept stopped when it is protected', () => {
    const world = new World();
    world.workload(testWorkloadSpec({ replicas: 1, strategy }, { protected: true }));
    const host = world.instances()[0]?.status.host ?? '';
    world.apply({ stopOthers: true }, undefined, host);
    world.settle();
    expect(world.instances().map(({ status }) => status.phase)).toEqual(['Stopped']);
  });
});

describe('the drain of a host', () => {
  const on = (host: string): Partial<InstanceSpec> => ({ placement: { hostLabels: { host } } });

  it('closes the host, stops what may be stopped, and opens it when it is cancelled', () => {
    const world = new World();
    world.instance('one', on('a'));
    world.instance('two', on('a'));
    world.apply({ stopOthers: true });
    world.settle();
    expect(world.drain()?.phase).toBe('Drained');
    expect(world.on('a').map(({ status }) => status.phase)).toEqual(['Stopped', 'Stopped']);
    expect(isDraining(world.cache.get('host', 'hosts/a')?.value)).toBe(true);
    world.instance('three', on('a'));
    expect(world.on('a')).toHaveLength(2);
    commitPlan(world.cache, cancelDrain(world.cache, 'a', world.ctx()).plan);
    world.settle();
    expect(world.on('a')).toHaveLength(3);
  });

  it('ends incomplete when something cannot move', () => {
    const world = new World();
    world.instance('one', on('a'));
    world.apply();
    world.settle();
    expect(world.drain()).toMatchObject({ phase: 'Incomplete', guests: [{ name: 'one', progress: 'left' }] });
    expect(world.on('a')[0]?.status.phase).toBe('Running');
  });

  it('does at its deadline what the plan says', () => {
    const world = new World();
    world.instance('one', { ...on('a'), ttlMs: 86_400_000 });
    world.apply({ atDeadline: 'stop' });
    world.settle();
    expect(world.drain()?.phase).toBe('Draining');
    world.nowMs += options.deadlineMs;
    world.settle();
    expect(world.drain()?.phase).toBe('Incomplete');
    expect(world.on('a')[0]?.status.phase).toBe('Stopped');
  });

  it('goes on when a step is refused', () => {
    const world = new World();
    world.workload({ replicas: 3 });
    const { hash } = world.plan();
    world.apply({}, hash);
    const [first] = world.on('a');
    const entry = world.cache.get('instance', keys.instance('default', first?.metadata.name ?? ''));
    if (!entry) throw new Error('nothing is on a');
    const spec = { ...entry.value.spec, protected: true };
    commitPlan(world.cache, {
      changes: [{ key: entry.key, ifRevision: entry.revision, value: { ...entry.value, spec } }],
    });
    world.settle();
    expect(world.drain()?.guests.map(({ progress }) => progress)).toEqual(['failed', 'done', 'done']);
    expect(world.drain()?.phase).toBe('Incomplete');
  });

  it('is refused by the hash of another plan, and says what has changed', () => {
    const world = new World();
    world.instance('one', on('a'));
    const { hash } = world.plan();
    world.instance('two', on('a'));
    const before = world.cache.revision;
    expect(() => world.apply({}, hash)).toThrow('instance default/two is new here: stays (NoHost)');
    expect(world.cache.revision).toBe(before);
  });

  it('is refused when the plan was shown long ago', () => {
    const world = new World();
    world.instance('one', on('a'));
    const { hash } = world.plan();
    world.nowMs += 2 * 3_600_000 - 60_000;
    expect(() => world.apply({}, hash)).toThrow('was shown too long ago');
  });

  it('is repeated without effect', () => {
    const world = new World();
    world.instance('one', on('a'));
    const { hash } = world.plan();
    world.apply({}, hash);
    const before = world.cache.get('hostPlan', keys.hostPlan('a'))?.revision;
    world.apply({}, hash);
    expect(world.cache.get('hostPlan', keys.hostPlan('a'))?.revision).toBe(before);
  });
});

it('opens a host whose drain a restore has left out', () => {
  const world = new World();
  world.instance('one', {});
  world.apply();
  const entry = world.cache.get('hostPlan', keys.hostPlan('a'));
  if (!entry) throw new Error('no drain');
  commitPlan(world.cache, { changes: [{ key: entry.key, ifRevision: entry.revision, value: null }] });
  expect(isDraining(world.cache.get('host', 'hosts/a')?.value)).toBe(true);
  const { plan, ended } = cancelDrain(world.cache, 'a', world.ctx());
  commitPlan(world.cache, plan);
  expect(ended).toMatchObject({ phase: 'Cancelled', guests: [] });
  expect(isDraining(world.cache.get('host', 'hosts/a')?.value)).toBe(false);
  expect(() => cancelDrain(world.cache, 'a', world.ctx())).toThrow('is not drained');
});

describe('several drains of one workload', () => {
  const rows: readonly [number, number | string, number | string, string[]][] = [
    [6, 1, 0, ['a', 'b']],
    [6, 0, 1, ['a', 'b']],
    [5, '50%', '40%', ['a', 'b', 'c']],
    [3, '10%', '10%', ['a', 'c']],
    [8, 3, 2, ['d', 'b', 'a']],
  ];
  it.each(rows)('%i copies, surge %s, unavailable %s, hosts %j', (replicas, maxSurge, maxUnavailable, hosts) => {
    const world = new World(['a', 'b', 'c', 'd', 'e']);
    const strategy = { ...testWorkloadSpec().strategy, maxSurge, maxUnavailable };
    world.workload({ replicas, strategy });
    const least = replicas - boundsOf(strategy, replicas).unavailable;
    for (const host of hosts) world.apply({ movesMax: 5 }, undefined, host);
    world.settle(() => expect(world.readyCount()).toBeGreaterThanOrEqual(least));
    for (const host of hosts) {
      expect(world.drain(host)?.phase).toBe('Drained');
      expect(world.on(host)).toEqual([]);
    }
    expect(world.readyCount()).toBe(replicas);
  });
});

describe('drains at random', () => {
  it.each(Array.from({ length: 25 }, (_, seed) => seed))('end, and keep the workload available (seed %i)', (seed) => {
    const prng = seededPrng(seed);
    const hosts = ['a', 'b', 'c', 'd', 'e', 'f'].slice(0, 4 + prng.below(3));
    const world = new World(hosts);
    const replicas = 2 + prng.below(8);
    const strategy = { ...testWorkloadSpec().strategy, maxSurge: prng.below(3), maxUnavailable: 1 + prng.below(2) };
    world.workload({ replicas, strategy });
    const least = replicas - boundsOf(strategy, replicas).unavailable;
    const drained = hosts.filter((host, i) => i > 1 && prng.below(2) === 0 && host !== '');
    const watch = (): void => expect(world.readyCount()).toBeGreaterThanOrEqual(least);
    for (const host of drained) {
      world.apply({ movesMax: 1 + prng.below(3), deadlineMs: 60_000 }, undefined, host);
      world.turns(prng.below(6), watch);
    }
    const cancelled = drained.filter(() => prng.below(4) === 0);
    for (const host of cancelled) commitPlan(world.cache, cancelDrain(world.cache, host, world.ctx()).plan);
    world.settle(watch);
    for (const host of drained) {
      const phase = world.drain(host)?.phase;
      if (cancelled.includes(host)) expect(phase).toBe('Cancelled');
      else expect([phase, world.on(host)]).toEqual(['Drained', []]);
    }
    expect(world.readyCount()).toBe(replicas);
  });
});
