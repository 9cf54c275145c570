import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { release } from '../ledger/ledger.ts';
import type { Cache } from '../state/cache.ts';
import type { Policy } from '../state/context.ts';
import { keys } from '../state/keys.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../testing.ts';
import { passGates } from './limits.ts';
import { queueOf } from './queue.ts';

let made = 0;
const keyOf = (name: string) => `instances/default/${name}`;

function fleet(
  policy: Partial<Policy>,
  ...items: readonly (readonly [string, Partial<InstanceSpec>?, Record<string, string>?])[]
) {
  const cache = testCache([
    testImage('debian-12', { aliases: ['debian'] }),
    testImage('illumos'),
    ...testHost('h1', { capacity: { VCPU: 100, MEMORY_MB: 102_400 } }),
    ...items.map(([name, spec = {}, labels = {}], i) =>
      testInstance(name, { image: 'debian-12', cpus: 1, memoryMiB: 16, ...spec }, {}, { labels, createdAtMs: i }),
    ),
  ]);
  const ctx = () => testContext({ policy, newId: (prefix) => `${prefix}_${++made}` });
  const line = queueOf(cache).dueLine(ctx().policy);
  for (const key of queueOf(cache).keys()) line.add(key);
  const woken: string[] = [];
  cache.onChange((change) => woken.push(...placement.wakes(change, cache)));
  const work = (): void => {
    for (const key of woken.splice(0)) line.add(key);
    for (let key = line.take(); key !== undefined; key = line.take()) {
      commitPlan(cache, placement.reconcile(cache, key, ctx()));
      for (const next of woken.splice(0)) line.add(next);
    }
  };
  return { cache, work };
}

const phases = (cache: Cache) =>
  Object.fromEntries(
    [...cache.list('instance')].map(({ value }) => [
      value.metadata.name,
      value.status.phase === 'Pending' ? value.status.conditions[0]?.message : 'placed',
    ]),
  );

function end(cache: Cache, name: string): void {
  const instance = cache.get('instance', keyOf(name))?.value ?? expect.unreachable();
  addRecord(cache, { ...instance, status: { ...instance.status, phase: 'Exited' } });
  for (const allocation of cache.allocationsOfConsumer(instance.metadata.id))
    commitPlan(cache, { changes: release(allocation) });
}

it('places so many at once, and the next when one has ended', () => {
  const { cache, work } = fleet({ maxConcurrency: 2 }, ['a'], ['b'], ['c'], ['d']);
  work();
  const waits = 'ConcurrencyLimit: 2 of 2 instances';
  expect(phases(cache)).toEqual({ a: 'placed', b: 'placed', c: waits, d: waits });
  end(cache, 'a');
  work();
  expect(phases(cache)).toEqual({ a: 'placed', b: 'placed', c: 'placed', d: waits });
});

describe('a gang that a limit holds back', () => {
  const gang = { name: 'g', size: 2 };

  /** So that room released there helps no instance. */
  function pauseAndAdd(cache: Cache, paused: string, added: string): void {
    const host = cache.get('host', keys.host(paused))?.value ?? expect.unreachable();
    addRecord(cache, { ...host, spec: { ...host.spec, paused: true } });
    for (const record of testHost(added, { capacity: { VCPU: 100, MEMORY_MB: 102_400 } })) addRecord(cache, record);
  }

  it('is placed when the limit eases, though the queue was there before the limits were known', () => {
    const { cache, work } = fleet({ maxConcurrency: 2 }, ['first'], ['a', { gang }], ['b', { gang }]);
    work();
    pauseAndAdd(cache, 'h1', 'h2');
    work();
    const waits = 'ConcurrencyLimit: 1 of 2 instances are there, and 2 more would come at once';
    expect(phases(cache)).toEqual({ first: 'placed', a: waits, b: waits });
    end(cache, 'first');
    work();
    expect(phases(cache)).toEqual({ first: 'placed', a: 'placed', b: 'placed' });
  });

  it('is placed when a limit eases that only its second counts towards', () => {
    const { cache, work } = fleet({ capacityMap: { illumos: 1 } }, ['first', { image: 'illumos' }], ['a', { gang }]);
    work();
    addRecord(cache, testInstance('b', { image: 'illumos', cpus: 1, memoryMiB: 16, gang }));
    pauseAndAdd(cache, 'h1', 'h2');
    work();
    const waits = 'CapacityMap: 1 of 1 illumos';
    expect(phases(cache)).toEqual({ first: 'placed', a: waits, b: waits });
    end(cache, 'first');
    work();
    expect(phases(cache)).toEqual({ first: 'placed', a: 'placed', b: 'placed' });
  });

  it('is left alone until the limit leaves room for all of it', () => {
    const { cache, work } = fleet({ maxConcurrency: 3 }, ['x'], ['y'], ['z']);
    work();
    for (const name of ['a', 'b'])
      addRecord(cache, testInstance(name, { image: 'debian-12', cpus: 1, memoryMiB: 16, gang }));
    work();
    const woken: string[] = [];
    cache.onChange((change) => woken.push(...placement.wakes(change, cache)));
    end(cache, 'x');
    expect(woken).toEqual([]);
    end(cache, 'y');
    expect(new Set(woken)).toEqual(new Set(['a', 'b'].map(keyOf)));
    work();
    expect(phases(cache)).toMatchObject({ a: 'placed', b: 'placed' });
  });
});

it('counts only those with the label, where one is named', () => {
  const job = { kind: 'job' };
  const { cache, work } = fleet(
    { maxConcurrency: 1, concurrencyLabel: 'kind=job' },
    ['a', {}, job],
    ['b', {}, job],
    ['c'],
  );
  work();
  expect(phases(cache)).toEqual({ a: 'placed', b: 'ConcurrencyLimit: 1 of 1 kind=job', c: 'placed' });
});

it('counts by the name of the image, its aliases and what runs-on says', () => {
  const { cache, work } = fleet(
    { capacityMap: { debian: 1, 'ubuntu-22.04': 0 } },
    ['a'],
    ['b', { image: 'debian' }],
    ['c', { image: 'illumos' }],
    ['d', { image: 'illumos' }, { 'runs-on': 'ubuntu-22.04' }],
  );
  work();
  expect(phases(cache)).toEqual({
    a: 'placed',
    b: 'CapacityMap: 1 of 1 debian',
    c: 'placed',
    d: 'CapacityMap: 0 of 0 ubuntu-22.04',
  });
});

it('counts what another control plane placed under a name that an own create, about to fail, has taken too', () => {
  const policy = { capacityMap: { debian: 1 } };
  const { cache, work } = fleet(policy, ['b']);
  const own = cache.assume({
    changes: [{ key: keyOf('a'), ifRevision: 0, value: testInstance('a', { image: 'illumos' }) }],
  });
  const theirs = testInstance('a', { image: 'debian-12' }, { phase: 'Scheduled', host: 'h1', incarnation: 1 });
  const id = `${theirs.metadata.id}-theirs`;
  expect(queueOf(cache).taken({ reason: 'CapacityMap', word: 'debian', max: 1 })).toBe(0);
  addRecord(cache, { ...theirs, metadata: { ...theirs.metadata, id } });
  addRecord(cache, {
    kind: 'allocation',
    consumer: { id, incarnation: 1, project: 'default', name: 'a' },
    host: 'h1',
    amounts: { host_h1: { VCPU: 1 } },
    driver: 'fake',
  });
  if (own.ok) cache.forget(own);
  expect(queueOf(cache).taken({ reason: 'CapacityMap', word: 'debian', max: 1 })).toBe(1);
  work();
  expect(phases(cache)).toMatchObject({ b: 'CapacityMap: 1 of 1 debian' });
});

it('lets two decisions on the same count collide', () => {
  const { cache } = fleet({ maxConcurrency: 1 }, ['a'], ['b', { cpus: 3 }]);
  for (const record of testHost('h0', { capacity: { VCPU: 2, MEMORY_MB: 20 } })) addRecord(cache, record);
  const policy = { maxConcurrency: 1 };
  const first = placement.reconcile(cache, keyOf('a'), testContext({ policy }));
  const second = placement.reconcile(cache, keyOf('b'), testContext({ policy, newId: (prefix) => `${prefix}_second` }));
  commitPlan(cache, first);
  expect(() => commitPlan(cache, second)).toThrow('gates/limit/');
});

it('passes a gate once, also where two limits count the same', () => {
  const passed = passGates(testCache([]), ['limit/a', 'limit/b', 'limit/a']);
  expect(passed.map(({ key }) => key)).toEqual(['gates/limit/a', 'gates/limit/b']);
});

it('counts what an own create of the same name hides towards every limit, and once it is seen towards its own', () => {
  const { cache, work } = fleet({ capacityMap: { debian: 1, illumos: 1 } }, ['b'], ['c', { image: 'illumos' }]);
  work();
  end(cache, 'b');
  end(cache, 'c');
  const mine = testInstance(
    'a',
    { image: 'illumos', powerState: 'stopped' },
    { phase: 'Stopped' },
    { id: 'inst_mine' },
  );
  const assumed = cache.assume({ changes: [{ key: keyOf('a'), ifRevision: 0, value: mine }] });
  const theirs = testInstance('a', { image: 'debian-12' }, { phase: 'Scheduled', host: 'h1', incarnation: 1 });
  const [, provider] = testHost('h1');
  addRecord(cache, theirs);
  addRecord(cache, {
    kind: 'allocation',
    consumer: { id: theirs.metadata.id, incarnation: 1, project: 'default', name: 'a' },
    host: 'h1',
    amounts: { [provider.id]: { VCPU: 1 } },
    driver: 'fake',
  });
  addRecord(cache, testInstance('d', { image: 'debian-12', cpus: 1 }));
  addRecord(cache, testInstance('e', { image: 'illumos', cpus: 1 }));
  work();
  expect(phases(cache)).toMatchObject({ d: 'CapacityMap: 1 of 1 debian', e: 'CapacityMap: 1 of 1 illumos' });
  if (assumed.ok) cache.forget(assumed);
  work();
  expect(phases(cache)).toMatchObject({ d: 'CapacityMap: 1 of 1 debian', e: 'placed' });
});
