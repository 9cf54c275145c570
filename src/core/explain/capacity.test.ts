import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import type { Size } from '../../api/resources/size.ts';
import { placement } from '../controllers/placement.ts';
import { keys } from '../state/keys.ts';
import { addRecord, commitPlan, testContext, testFleet, testHost, type TestHost, testInstance } from '../testing.ts';
import { capacityInSteps } from './capacity.ts';
import { countMore } from './count-more.ts';
import { explain } from './explain.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { lossesInSteps } from './losses.ts';
import { requestOf } from '../scheduler/request.ts';
import { schedule } from '../scheduler/schedule.ts';
import { finish } from '../scheduler/steps.ts';

function fleet(hosts: Record<string, TestHost>, ...instances: readonly Instance[]) {
  const ctx = testContext();
  const cache = testFleet(hosts);
  const place = (instance: Instance): boolean => {
    addRecord(cache, instance);
    const key = keys.instance('default', instance.metadata.name);
    commitPlan(cache, placement.reconcile(cache, key, ctx));
    return cache.get('instance', key)?.value.status.host !== undefined;
  };
  for (const instance of instances) place(instance);
  return { cache, place };
}

function size(name: string, cpus: number, memoryMiB: number): Size {
  const { metadata } = testInstance(name);
  return {
    kind: 'size',
    schemaVersion: 1,
    metadata: { ...metadata, project: '' },
    spec: { cpus, memoryMiB },
    status: {},
  };
}

function ask({ cache }: ReturnType<typeof fleet>, instance: Instance) {
  return finish(countMore(cache, requestOf(cache, instance)));
}

const small = testInstance('small', { cpus: 2, memoryMiB: 1024 });
const four = { capacity: { VCPU: 4, MEMORY_MB: 8192 } };

describe('how many more fit', () => {
  it('is counted by size and pool', () => {
    const { cache } = fleet({ a: { ...four, spec: { pool: 'ci' } }, b: four, c: { ...four, ready: false } });
    addRecord(cache, size('small', 2, 1024));
    addRecord(cache, size('large', 4, 8192));
    const { sizes, pools, hosts } = finish(capacityInSteps(cache, { asked: null, losses: 0 }));
    expect(hosts).toBe(3);
    expect(sizes.map(({ size: name, more, pools: each }) => [name, more, each])).toEqual([
      [
        'small',
        4,
        [
          { pool: '', more: 2 },
          { pool: 'ci', more: 2 },
        ],
      ],
      [
        'large',
        2,
        [
          { pool: '', more: 1 },
          { pool: 'ci', more: 1 },
        ],
      ],
    ]);
    expect(pools).toMatchObject([
      { pool: '', hosts: 2, open: 1, classes: { VCPU: { capacity: 8, used: 0 } } },
      { pool: 'ci', hosts: 1, open: 1, classes: { VCPU: { capacity: 4, used: 0 } } },
    ]);
  });

  it('says what strands the rest', () => {
    const world = fleet({ a: { capacity: { VCPU: 8, MEMORY_MB: 2048 } }, b: { ...four, spec: { paused: true } } });
    const { more, free, stranded } = ask(world, small);
    expect(more).toBe(2);
    expect(free).toEqual({ VCPU: 12, MEMORY_MB: 2048 + 8192 });
    expect(stranded).toMatchObject([
      { reason: 'HostPaused', hosts: 1, free: { VCPU: 4, MEMORY_MB: 8192 } },
      { reason: 'InsufficientMemory', hosts: 1, free: { VCPU: 4, MEMORY_MB: 0 }, examples: [{ host: 'a' }] },
    ]);
  });

  it('minds rules about the number of instances, and host ports', () => {
    const quota = fleet({ a: { ...four, spec: { instancesMax: 1 } } });
    expect(ask(quota, small).more).toBe(1);
    const ports = testInstance('p', {
      cpus: 1,
      memoryMiB: 512,
      ports: [{ guestPort: 80, hostPort: 80, protocol: 'tcp' }],
    });
    expect(ask(fleet({ a: four, b: four }), ports).more).toBe(2);
  });

  it('minds where the others are', () => {
    const labels = { app: 'db' };
    const apart = testInstance(
      'db',
      { cpus: 1, memoryMiB: 512, placement: { antiAffinity: [{ to: labels, by: 'host', required: true }] } },
      {},
      { labels },
    );
    expect(ask(fleet({ a: four, b: four, c: four }), apart)).toMatchObject({
      more: 3,
      free: { VCPU: 12 },
      stranded: [{ hosts: 3, free: { VCPU: 9 } }],
    });
  });

  it('is what the scheduler would then place, one after the other', () => {
    const host = fc.record({ VCPU: fc.integer({ min: 1, max: 12 }), MEMORY_MB: fc.integer({ min: 512, max: 8192 }) });
    const spec = fc.record({ cpus: fc.integer({ min: 1, max: 4 }), memoryMiB: fc.integer({ min: 100, max: 3000 }) });
    fc.assert(
      fc.property(fc.array(host, { minLength: 1, maxLength: 4 }), spec, spec, (capacities, there, asked) => {
        const hosts = Object.fromEntries(capacities.map((capacity, i) => [`h${i}`, { capacity }]));
        const world = fleet(hosts, testInstance('there', there));
        const { more } = ask(world, testInstance('x', asked));
        let placed = 0;
        while (world.place(testInstance(`x${placed}`, asked))) placed += 1;
        expect(more).toBe(placed);
      }),
      { numRuns: 60 },
    );
  });
});

it('what is tried leaves no trace: all is free that was, and the scheduler decides as it would have', () => {
  const host = fc.record({
    capacity: fc.record({ VCPU: fc.integer({ min: 1, max: 8 }), MEMORY_MB: fc.constantFrom(1024, 4096) }),
    labels: fc.record({ zone: fc.constantFrom('a', 'b') }),
    ready: fc.boolean(),
    spec: fc.record({ paused: fc.boolean() }),
  });
  const spec = fc.record({
    cpus: fc.integer({ min: 1, max: 6 }),
    memoryMiB: fc.constantFrom(256, 1024),
    placement: fc.constantFrom<InstanceSpec['placement']>(
      {},
      { antiAffinity: [{ to: { app: 'x' }, by: 'zone', required: true }] },
    ),
  });
  fc.assert(
    fc.property(
      fc.array(host, { minLength: 1, maxLength: 5 }),
      fc.array(spec, { maxLength: 5 }),
      spec,
      (all, there, asked) => {
        const hosts = Object.fromEntries(all.map((each, i) => [`h${i}`, each]));
        const labels = { app: 'x' };
        const instances = there.map((each, i) => testInstance(`i${i}`, each, {}, { labels }));
        const { cache } = fleet(hosts, ...instances);
        const waiting = testInstance('w', asked, {}, { labels });
        const state = () => {
          const request = requestOf(cache, waiting);
          const { guests, hosts: known } = fleetOf(cache);
          const columns = [...fleetOf(cache).columns()].map((column) =>
            known.flatMap((host, slot) =>
              host ? [[column.capacity(slot), column.used(slot), column.most(slot)]] : [],
            ),
          );
          // The slot of a hypothetical host remains, and is free.
          const held = guests.filter((_, slot) => known[slot] !== undefined);
          return [columns, held, schedule(cache, request), schedule(cache, request)];
        };
        const before = JSON.stringify(state());
        explain(cache, waiting);
        finish(capacityInSteps(cache, { asked: requestOf(cache, waiting), losses: 2 }));
        expect(JSON.stringify(state())).toBe(before);
      },
    ),
    { numRuns: 150 },
  );
});

describe('the loss of hosts', () => {
  const run = (world: ReturnType<typeof fleet>, losses: number) =>
    finish(capacityInSteps(world.cache, { asked: null, losses })).losses;

  it('is survived when everything finds another place', () => {
    const world = fleet({ a: four, b: four }, small);
    expect(run(world, 1)).toEqual([{ losses: 1, checked: 1, of: 1, survived: 1, worst: [] }]);
  });

  it('names who would not fit, and why', () => {
    const world = fleet(
      { a: four, b: { capacity: { VCPU: 2, MEMORY_MB: 8192 } } },
      testInstance('big', { cpus: 4 }),
      small,
    );
    const [one] = run(world, 1);
    expect(one).toMatchObject({ checked: 2, survived: 0 });
    expect(one?.worst).toContainEqual({
      hosts: ['a'],
      instances: 1,
      unplaced: 1,
      examples: [{ instance: 'default/big', message: '0 of 1 host: 1 InsufficientCpu' }],
    });
  });

  it('takes two at once where that was asked', () => {
    const world = fleet({ a: four, b: four, c: four }, small, testInstance('other', { cpus: 4, memoryMiB: 512 }));
    const [, two] = run(world, 2);
    expect(two).toMatchObject({ losses: 2, checked: 1, of: 1, survived: 0, worst: [{ instances: 2, unplaced: 1 }] });
  });

  it('places by the rules about neighbours too, and leaves the fleet as it was', () => {
    const labels = { app: 'db' };
    const apart = { antiAffinity: [{ to: labels, by: 'host', required: true }] };
    const db = (name: string) => testInstance(name, { cpus: 1, memoryMiB: 512, placement: apart }, {}, { labels });
    const world = fleet({ a: four, b: four }, db('db-1'), db('db-2'));
    const [one] = run(world, 1);
    expect(one).toMatchObject({ checked: 2, survived: 0 });
    expect(run(world, 1)).toEqual([one]);
  });

  it('leaves no trace of who goes while it is looked into', () => {
    const labels = { app: 'db' };
    const apart = { antiAffinity: [{ to: labels, by: 'host', required: true }] };
    const db = (name: string) => testInstance(name, { cpus: 1, memoryMiB: 512, placement: apart }, {}, { labels });
    for (let before = 0, done = false; !done; before++) {
      const { cache } = fleet({ a: four, b: four }, db('db-1'), db('db-2'));
      const steps = lossesInSteps(cache, 1);
      for (let i = 0; i < before; i++) done ||= steps.next().done === true;
      const revision = cache.revision + 1;
      cache.apply([{ key: keys.instance('default', 'db-1'), value: null, revision }], revision);
      const request = requestOf(cache, db('db-3'));
      do expect(schedule(cache, request)).toMatchObject({ placed: true, host: 'a' });
      while (steps.next().done !== true);
    }
  });

  it('of many instances on one host is looked at in pieces, with the same answer', () => {
    const taken = (count: number) => {
      const many = Array.from({ length: count }, (_, i) => testInstance(`many-${i}`, { cpus: 1, memoryMiB: 64 }));
      const world = fleet({ a: { capacity: { VCPU: 64, MEMORY_MB: 8192 } } }, ...many);
      for (const record of testHost('b', { capacity: { VCPU: 30, MEMORY_MB: 8192 } })) addRecord(world.cache, record);
      const steps = lossesInSteps(world.cache, 1);
      let step = steps.next();
      let pieces = 1;
      for (; !step.done; step = steps.next()) pieces += 1;
      return { pieces, answer: step.value };
    };
    const { pieces, answer } = taken(40);
    expect(answer).toMatchObject({ checked: 1, survived: 0, worst: [{ instances: 40, unplaced: 10 }] });
    expect(pieces).toBeGreaterThan(taken(1).pieces + 1);
  });
});
