// The maintenance of several hosts, on a fleet whose hosts do at once what they are told. Machines boot when the test says so.

import { describe, expect, it } from 'vitest';
import type { RollOptions } from '../../../api/plans/host-roll.ts';
import { seededPrng } from '../../../base/prng.ts';
import { maintenanceOrderFor } from '../../plans/maintenance-order.ts';
import { planRoll } from '../../plans/roll.ts';
import { beginRoll, cancelRoll, pauseRoll } from '../../operations/plans/host-roll.ts';
import { isDraining } from '../../state/conditions.ts';
import { keys } from '../../state/keys.ts';
import { commitPlan, testWorkloadSpec } from '../../testing.ts';
import { boundsOf } from '../../workloads/pass.ts';
import { World } from './test-drained-fleet.ts';

const defaults: RollOptions = {
  ...{ maxAtOnce: 1, stopOthers: false, movesMax: 2, restore: true },
  ...{ drainDeadlineMs: 600_000, bootDeadlineMs: 600_000 },
};
const optionsOf = (changed: Partial<RollOptions> = {}): RollOptions => ({
  ...defaults,
  hosts: ['a', 'b', 'c'],
  ...changed,
});

const planOf = (world: World, changed: Partial<RollOptions> = {}) =>
  planRoll(world.cache, optionsOf(changed), world.ctx());
const groupsOf = (world: World, changed: Partial<RollOptions> = {}) =>
  planOf(world, changed).hosts.map(({ host, group }) => `${host}${group}`);
const rollOf = ({ cache }: World) => cache.get('hostRoll', keys.hostRoll)?.value;
const stepsOf = (world: World) => rollOf(world)?.hosts.map(({ host, step }) => `${host} ${step}`);

function begin(world: World, changed: Partial<RollOptions> = {}): void {
  const { hash } = planOf(world, changed);
  commitPlan(world.cache, beginRoll(world.cache, { options: optionsOf(changed), hash }, world.ctx()).plan);
}

/** Every host that waits for it boots, until no host waits. */
function bootAll(world: World, watch: () => void = () => {}): void {
  for (let boot = 1; boot < 50; boot++) {
    world.settle(watch);
    const waiting = rollOf(world)?.hosts.filter(({ step }) => step === 'maintenance') ?? [];
    if (waiting.length === 0) return;
    for (const { host } of waiting) world.change(host, { status: { bootId: `boot-${boot}` } });
  }
}

const pinned = { placement: { hostLabels: { host: 'a' } } };

describe('the maintenance of hosts', () => {
  it('empties one host after another, waits for its boot, and gives back what had left', () => {
    const world = new World(['a', 'b', 'c'], { moves: true });
    for (const name of ['one', 'two', 'three']) world.instance(name);
    const before = world.instances().map(({ status }) => status.host);
    begin(world);
    world.settle();
    expect([stepsOf(world), world.on('a')]).toEqual([['a maintenance', 'b waiting', 'c waiting'], []]);
    world.change('a', { status: { bootId: 'boot-1' } });
    world.settle();
    expect(stepsOf(world)).toEqual(['a done', 'b maintenance', 'c waiting']);
    bootAll(world);
    expect([rollOf(world)?.phase, stepsOf(world)]).toEqual(['Done', ['a done', 'b done', 'c done']]);
    expect(world.instances().map(({ status }) => status.host)).toEqual(before);
    for (const host of ['a', 'b', 'c']) expect(isDraining(world.hostRecord(host).value)).toBe(false);
  });

  it('orders the command of an agent that has one, once, until the machine has booted', () => {
    const world = new World();
    world.change('a', { status: { maintains: true } });
    begin(world, { hosts: ['a'] });
    world.settle();
    const order = maintenanceOrderFor(world.cache, 'a');
    expect([order === undefined, rollOf(world)?.hosts[0]?.order]).toEqual([false, order]);
    world.change('a', { status: { bootId: 'boot-1' } });
    expect(maintenanceOrderFor(world.cache, 'a')).toBeUndefined();
    world.settle();
    expect(rollOf(world)?.phase).toBe('Done');
  });

  it('stops at a command that fails, and repeats it under another id when it is resumed', () => {
    const world = new World();
    world.change('a', { status: { maintains: true } });
    begin(world);
    world.settle();
    const first = maintenanceOrderFor(world.cache, 'a') ?? '';
    world.change('a', { status: { maintenance: { id: first, state: 'failed', message: 'exit code 3: no kernel' } } });
    world.settle();
    const { phase, hosts: [host] = [] } = rollOf(world) ?? {};
    expect([phase, host?.message]).toEqual(['Failed', 'its maintenance command has failed: exit code 3: no kernel']);
    expect([stepsOf(world), maintenanceOrderFor(world.cache, 'a')]).toEqual([
      ['a failed', 'b waiting', 'c waiting'],
      undefined,
    ]);
    commitPlan(world.cache, pauseRoll(world.cache, false, world.ctx()).plan);
    world.settle();
    const second = maintenanceOrderFor(world.cache, 'a');
    expect([second === undefined, second === first]).toEqual([false, false]);
    bootAll(world);
    expect(rollOf(world)?.phase).toBe('Done');
  });

  it.each([
    [
      'a host that does not come back',
      (world: World) => (world.nowMs += defaults.bootDeadlineMs),
      'another boot id in time',
    ],
    ['a host that is removed', (world: World) => remove(world, 'a'), 'the host was removed'],
    ['a host that is opened too early', open, 'opened before it had booted'],
  ])('stops at %s', (_, happens, said) => {
    const world = new World();
    begin(world);
    world.settle();
    happens(world);
    world.settle();
    expect([rollOf(world)?.phase, rollOf(world)?.hosts[0]?.message]).toEqual(['Failed', expect.stringContaining(said)]);
    expect(stepsOf(world)?.slice(1)).toEqual(['b waiting', 'c waiting']);
  });

  it('stops at a host that cannot be emptied any more', () => {
    const world = new World();
    begin(world);
    world.instance('late', { placement: { hostLabels: { host: 'b' } } });
    bootAll(world);
    expect(stepsOf(world)).toEqual(['a done', 'b failed', 'c waiting']);
    expect(rollOf(world)?.hosts[1]?.message).toContain('it cannot be emptied now: instance late');
  });

  it('begins no host while it is paused, and opens its hosts when it is cancelled', () => {
    const world = new World();
    begin(world);
    world.settle();
    commitPlan(world.cache, pauseRoll(world.cache, true, world.ctx()).plan);
    bootAll(world);
    expect([rollOf(world)?.phase, stepsOf(world)]).toEqual(['Paused', ['a done', 'b waiting', 'c waiting']]);
    commitPlan(world.cache, pauseRoll(world.cache, false, world.ctx()).plan);
    world.settle();
    commitPlan(world.cache, cancelRoll(world.cache, world.ctx()).plan);
    world.settle();
    expect([rollOf(world)?.phase, stepsOf(world)]).toEqual(['Cancelled', ['a done', 'b left', 'c left']]);
    for (const host of ['a', 'b', 'c']) expect(isDraining(world.hostRecord(host).value)).toBe(false);
    expect(() => pauseRoll(world.cache, false, world.ctx())).toThrow('the roll is Cancelled');
  });

  it('stops what cannot move where that is allowed, and starts it again', () => {
    const world = new World();
    world.instance('one', pinned);
    begin(world, { stopOthers: true });
    world.settle();
    expect(world.on('a').map(({ status }) => status.phase)).toEqual(['Stopped']);
    bootAll(world);
    expect([rollOf(world)?.phase, world.on('a').map(({ status }) => status.phase)]).toEqual(['Done', ['Running']]);
  });
});

function remove({ cache }: World, host: string): void {
  const entry = cache.get('host', keys.host(host));
  if (entry) commitPlan(cache, { changes: [{ key: entry.key, ifRevision: entry.revision, value: null }] });
}

function open(world: World): void {
  world.change('a', {
    status: { conditions: world.hostRecord('a').value.status.conditions.filter(({ type }) => type !== 'Draining') },
  });
}

describe('the plan of a roll', () => {
  it('has hosts together that can be emptied together, at most as many as are asked for', () => {
    const world = new World(['a', 'b', 'c']);
    expect(groupsOf(world)).toEqual(['a1', 'b2', 'c3']);
    expect(groupsOf(world, { maxAtOnce: 2 })).toEqual(['a1', 'b1', 'c2']);
    world.workload({ replicas: 2, template: testWorkloadSpec({}, { memoryMiB: 12_000 }).template });
    // Two copies, each nearly a whole host: of the hosts with one, no two can be empty at the same time.
    const groups = planOf(world, { maxAtOnce: 3 }).hosts;
    for (const { group } of groups)
      expect(groups.filter((other) => other.group === group).length).toBeLessThanOrEqual(1);
  });

  it('leaves out what cannot be emptied, with the reasons', () => {
    const world = new World();
    world.instance('one', pinned);
    const { hosts, blocked } = planOf(world);
    expect([hosts.map(({ host }) => host), blocked.map(({ host, reasons }) => [host, reasons[0]?.code])]).toEqual([
      ['b', 'c'],
      [['a', 'NoHost']],
    ]);
  });

  it('keeps hosts apart whose workload has one copy per host', () => {
    const world = new World();
    const strategy = { ...testWorkloadSpec().strategy, maxUnavailable: 1, maxSurge: 0 };
    world.workload({ perHost: true, replicas: 1, strategy });
    expect(groupsOf(world, { maxAtOnce: 3 })).toEqual(['a1', 'b2', 'c3']);
  });

  it.each([
    ['neither a pool nor hosts', { hosts: undefined }, 'name either a pool or hosts'],
    ['both', { pool: 'x' }, 'name either a pool or hosts'],
    ['a host that is not there', { hosts: ['a', 'z'] }, 'there is no host "z"'],
    ['a pool that is not there', { hosts: undefined, pool: 'x' }, 'there is no pool "x"'],
  ])('refuses %s', (_, changed, said) => {
    const { hosts, ...options } = optionsOf();
    const asked = { ...options, ...('hosts' in changed && changed.hosts === undefined ? {} : { hosts }), ...changed };
    const { hosts: named, ...rest } = asked;
    expect(() =>
      planRoll(new World().cache, named === undefined ? rest : { ...rest, hosts: named }, new World().ctx()),
    ).toThrow(said);
  });

  it('has another hash when another guest is interrupted, and the same when a copy of a workload comes', () => {
    const world = new World(['a', 'b', 'c'], { moves: true });
    const { hash } = planOf(world);
    world.workload({ replicas: 3 });
    expect(planOf(world).hash).toBe(hash);
    world.instance('one');
    expect(planOf(world).hash).not.toBe(hash);
    const options = optionsOf();
    expect(() => beginRoll(world.cache, { options, hash }, world.ctx())).toThrow('no longer as it was shown');
  });
});

describe('rolls at random', () => {
  it.each(Array.from({ length: 20 }, (_, seed) => seed))('end, and keep workloads available (seed %i)', (seed) => {
    const prng = seededPrng(seed);
    const hosts = ['a', 'b', 'c', 'd', 'e', 'f'].slice(0, 3 + prng.below(4));
    const world = new World(hosts, { moves: true });
    const replicas = 2 + prng.below(6);
    const strategy = { ...testWorkloadSpec().strategy, maxSurge: prng.below(3), maxUnavailable: 1 + prng.below(2) };
    world.workload({
      replicas,
      strategy,
      template: testWorkloadSpec({}, { memoryMiB: 512 << prng.below(5) }).template,
    });
    for (let i = 0; i < prng.below(5); i++) world.instance(`vm-${i}`);
    const before = new Map(world.instances().map(({ metadata, status }) => [metadata.name, status.host]));
    const changed = { hosts, maxAtOnce: 1 + prng.below(3) };
    const { hosts: planned, blocked } = planOf(world, changed);
    expect([...planned, ...blocked].map(({ host }) => host).toSorted()).toEqual(hosts);
    const groups = Map.groupBy(planned, ({ group }) => group);
    expect(Math.max(0, ...[...groups.values()].map(({ length }) => length))).toBeLessThanOrEqual(changed.maxAtOnce);
    if (planned.length === 0) return;
    begin(world, changed);
    const least = replicas - boundsOf(strategy, replicas).unavailable;
    const webs = () => world.instances().filter(({ status }) => status.workload && status.guest?.ready).length;
    bootAll(world, () => {
      expect(webs()).toBeGreaterThanOrEqual(least);
      const closed = hosts.filter((host) => isDraining(world.hostRecord(host).value));
      expect(closed.length).toBeLessThanOrEqual(changed.maxAtOnce);
    });
    const roll = rollOf(world);
    if (roll?.phase === 'Failed') expect(roll.hosts.find(({ step }) => step === 'failed')?.message).toMatch(/./);
    else expect([roll?.phase, webs()]).toEqual(['Done', replicas]);
    if (roll?.phase === 'Done')
      for (const { metadata, status } of world.instances())
        if (metadata.name.startsWith('vm-')) expect(status.host).toBe(before.get(metadata.name));
  });
});
