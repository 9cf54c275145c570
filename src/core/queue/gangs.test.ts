import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { overUse, release } from '../ledger/ledger.ts';
import { createInstance, deleteInstance } from '../operations/instance.ts';
import type { Cache } from '../state/cache.ts';
import type { Policy } from '../state/context.ts';
import { addRecord, commitPlan, testCache, testContext, testHost, testImage, testInstance } from '../testing.ts';
import { gangsOf } from './gangs.ts';
import { queueOf } from './queue.ts';

let made = 0;
const ctx = (policy: Partial<Policy> = {}) => testContext({ policy, newId: (prefix) => `${prefix}_${++made}` });
const host = (name: string, cpus: number) => testHost(name, { capacity: { VCPU: cpus, MEMORY_MB: 102_400 } });
const member = (name: string, size: number, spec: Partial<InstanceSpec> = {}): Instance =>
  testInstance(name, { cpus: 2, memoryMiB: 16, gang: { name: 'g', size }, ...spec });
const keyOf = (name: string) => `instances/default/${name}`;
const statusOf = (cache: Cache, name: string) =>
  cache.get('instance', keyOf(name))?.value.status ?? expect.unreachable();
const whyOf = (cache: Cache, name: string) => statusOf(cache, name).conditions[0]?.message;

/** A cache whose queue is processed whenever an instance is woken. */
function worked(records: Parameters<typeof testCache>[0], policy: Partial<Policy> = {}) {
  const cache = testCache(records);
  const line = queueOf(cache).dueLine(ctx(policy).policy);
  for (const key of queueOf(cache).keys()) line.add(key);
  cache.onChange((change) => {
    for (const key of placement.wakes(change, cache)) line.add(key);
  });
  const work = (): void => {
    for (let key = line.take(); key !== undefined; key = line.take())
      commitPlan(cache, placement.reconcile(cache, key, ctx(policy)));
  };
  return { cache, work };
}

describe('a gang', () => {
  it('waits until all are there, then is placed in one Plan', () => {
    const { cache, work } = worked([testImage(), ...host('h1', 4), ...host('h2', 4), member('a', 3), member('b', 3)]);
    work();
    expect(whyOf(cache, 'a')).toBe('GangIncomplete: 2 of the 3 of gang g are there');
    addRecord(cache, member('c', 3));
    const plan = placement.reconcile(cache, keyOf('a'), ctx());
    expect(plan.changes.filter(({ value }) => value?.kind === 'allocation')).toHaveLength(3);
    work();
    expect(['a', 'b', 'c'].map((name) => statusOf(cache, name).phase)).toEqual(['Scheduled', 'Scheduled', 'Scheduled']);
  });

  it('is not placed when one of it fits nowhere beside the others, and says of all which', () => {
    const { cache, work } = worked([testImage(), ...host('h1', 5), member('a', 3), member('b', 3), member('c', 3)]);
    work();
    for (const name of ['a', 'b', 'c'])
      expect(whyOf(cache, name)).toBe('gang g: 2 of 3 fit at once; then c: 0 of 1 host: 1 InsufficientCpu');
    for (const record of host('h2', 2)) addRecord(cache, record);
    work();
    expect(statusOf(cache, 'c').phase).toBe('Scheduled');
  });

  it('is looked at when an image comes that one of it names', () => {
    const { cache, work } = worked([testImage(), ...host('h1', 4), member('a', 2), member('b', 2, { image: 'late' })]);
    work();
    expect(whyOf(cache, 'a')).toContain('ImageMissing');
    addRecord(cache, testImage('late'));
    work();
    expect(['a', 'b'].map((name) => statusOf(cache, name).phase)).toEqual(['Scheduled', 'Scheduled']);
  });

  it('is left alone when an image comes that nobody of it names', () => {
    const { cache } = worked([testImage(), ...host('h1', 4), member('a', 3), member('b', 3)]);
    const woken: string[] = [];
    cache.onChange((change) => woken.push(...placement.wakes(change, cache)));
    addRecord(cache, testImage('other'));
    expect(woken).toEqual([]);
  });

  it('is looked at when a neighbour comes that the younger asks for, whatever its priority', () => {
    const near = { placement: { affinity: [{ to: { app: 'db' }, by: 'host', required: true }] }, priority: 5 };
    const { cache, work } = worked([testImage(), ...host('h1', 6), member('a', 2), member('b', 2, near)]);
    work();
    expect(statusOf(cache, 'a').phase).toBe('Pending');
    addRecord(cache, testInstance('db', { cpus: 1, memoryMiB: 16 }, {}, { labels: { app: 'db' } }));
    work();
    expect(['db', 'a', 'b'].map((name) => statusOf(cache, name).phase)).toEqual([
      'Scheduled',
      'Scheduled',
      'Scheduled',
    ]);
  });

  it('is incomplete again when one is deleted', () => {
    const { cache, work } = worked([testImage(), ...host('h1', 1), member('a', 2), member('b', 2)]);
    work();
    commitPlan(cache, deleteInstance(cache, { project: 'default', name: 'a' }, ctx()).plan);
    work();
    expect(whyOf(cache, 'b')).toBe('GangIncomplete: 1 of the 2 of gang g are there');
  });

  it('is left by one whose name another has got, also where both are told of as one change', () => {
    const { cache } = worked([testImage(), member('a', 2), member('b', 2)]);
    expect(gangsOf(cache).living('default/g')).toHaveLength(2);
    addRecord(cache, testInstance('b', { cpus: 2 }, {}, { id: 'inst_other' }));
    expect(
      gangsOf(cache)
        .living('default/g')
        .map(({ key }) => key),
    ).toEqual([keyOf('a')]);
  });

  it('waits for a limit that lets all of it in', () => {
    const { cache, work } = worked([testImage(), ...host('h1', 50), member('a', 2), member('b', 2)], {
      maxConcurrency: 1,
    });
    work();
    expect(whyOf(cache, 'b')).toBe('ConcurrencyLimit: 0 of 1 instances are there, and 2 more would come at once');
  });

  it('is of one size, and takes no more than that', () => {
    const cache = testCache([testImage(), member('a', 1)]);
    const create = (size: number) =>
      createInstance(cache, { project: 'default', name: 'x', labels: {}, spec: member('x', size).spec }, ctx());
    expect(() => create(2)).toThrow('gang "g" is of 1, as a says');
    expect(() => create(1)).toThrow('gang "g" is complete: it has 1 of 1');
  });

  it('is placed whole or not at all, whatever comes and goes', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const { cache, work } = worked([testImage(), ...host('h1', 6), ...host('h2', 5)]);
        for (let step = 0; step < 40; step++) {
          if (prng.chance(2, 3)) {
            const size = 1 + prng.below(4);
            const gang = { name: `g${step}`, size };
            for (let i = 0; i < size; i++)
              addRecord(cache, testInstance(`s${step}-${i}`, { cpus: 1 + prng.below(3), memoryMiB: 16, gang }));
          } else {
            const held = [...cache.list('allocation')];
            const gone = held[prng.below(held.length)]?.value.consumer.name.split('-')[0];
            for (const allocation of held) {
              if (allocation.value.consumer.name.split('-')[0] === gone)
                commitPlan(cache, { changes: release(allocation) });
            }
          }
          work();
          const placed = new Map<string, boolean>();
          for (const { value } of cache.list('instance')) {
            const isPlaced = value.status.host !== undefined;
            expect(placed.get(value.spec.gang?.name ?? '') ?? isPlaced).toBe(isPlaced);
            placed.set(value.spec.gang?.name ?? '', isPlaced);
          }
          expect(overUse(cache)).toEqual([]);
        }
      }),
      { numRuns: 40 },
    );
  });
});
