// The queue's order is that of a plain search through all pending instances, and a change wakes only instances that it
// may help.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import { claim, release } from '../ledger/ledger.ts';
import { requestOf } from '../scheduler/request.ts';
import type { Cache } from '../state/cache.ts';
import {
  addRecord,
  commitPlan,
  testCache,
  testContext,
  testHost,
  testImage,
  testInstance,
  testProject,
} from '../testing.ts';
import { queueOf } from './queue.ts';

const agingMs = 100;

interface Item {
  readonly name: string;
  readonly project?: string;
  readonly priority?: number;
  readonly createdAtMs?: number;
  readonly cpus?: number;
}

function waiting({ name, project = 'default', priority = 0, createdAtMs = 0, cpus = 1 }: Item): Instance {
  const id = `inst_${project}${name}`;
  return testInstance(name, { priority, cpus, memoryMiB: 16 }, {}, { id, project, createdAtMs });
}

const full = [testImage(), ...testHost('h1', { capacity: { VCPU: 100, MEMORY_MB: 102_400 } })];

/** All due keys, one after the other, as if none could be placed. */
function taken(cache: Cache): string[] {
  const line = queueOf(cache).dueLine({ agingMs });
  for (const key of queueOf(cache).keys()) line.add(key);
  const order: string[] = [];
  for (let key = line.take(); key !== undefined; key = line.take()) order.push(key.replace(/^instances\//, ''));
  return order;
}

function place(cache: Cache, key: string, atMs = 0): void {
  const plan = placement.reconcile(
    cache,
    key,
    testContext({ nowMs: atMs, newId: (prefix) => `${prefix}_${key}${atMs}` }),
  );
  commitPlan(cache, plan);
}

function hold(cache: Cache, project: string, cpus: number): void {
  const host = cache.providersOfHost('h1')[0]?.value.id ?? '';
  const consumer = { id: `held-${project}`, incarnation: 1, project, name: 'held' };
  commitPlan(cache, {
    changes: claim(cache, { consumer, host: 'h1', held: { [host]: { VCPU: cpus } }, driver: 'fake' }),
  });
}

describe('order', () => {
  const table: {
    readonly name: string;
    readonly items: readonly Item[];
    readonly first: string;
    readonly holds?: readonly [string, number][];
  }[] = [
    {
      name: 'the older first',
      items: [
        { name: 'b', createdAtMs: 5 },
        { name: 'a', createdAtMs: 9 },
      ],
      first: 'default/b',
    },
    { name: 'of one age the lower name', items: [{ name: 'b' }, { name: 'a' }], first: 'default/a' },
    {
      name: 'the higher priority before the older',
      items: [{ name: 'a' }, { name: 'b', priority: 1, createdAtMs: 90 }],
      first: 'default/b',
    },
    {
      name: 'one that waits as many times agingMs as its priority is lower is as good: 0 + 300/100 = 3 + 0',
      items: [{ name: 'a' }, { name: 'b', priority: 3, createdAtMs: 300 }],
      first: 'default/a',
    },
    {
      name: 'not before that: 0 + 200/100 < 3 + 0',
      items: [{ name: 'a' }, { name: 'b', priority: 3, createdAtMs: 200 }],
      first: 'default/b',
    },
    {
      name: 'the project with the smaller share',
      items: [
        { name: 'a', project: 'large' },
        { name: 'b', project: 'small', createdAtMs: 50 },
      ],
      holds: [
        ['large', 40],
        ['small', 10],
      ],
      first: 'small/b',
    },
    {
      name: 'a share counts less for a larger weight: 40/4 < 20/1',
      items: [
        { name: 'a', project: 'other' },
        { name: 'b', project: 'heavy', createdAtMs: 50 },
      ],
      holds: [
        ['heavy', 40],
        ['other', 20],
      ],
      first: 'heavy/b',
    },
    {
      name: 'priority goes before shares',
      items: [
        { name: 'a', project: 'large', priority: 1 },
        { name: 'b', project: 'small' },
      ],
      holds: [['large', 40]],
      first: 'large/a',
    },
  ];
  for (const { name, items, first, holds = [] } of table) {
    it(name, () => {
      const cache = testCache([...full, testProject('heavy', { weight: 4 }), ...items.map(waiting)]);
      for (const [project, cpus] of holds) hold(cache, project, cpus);
      expect(taken(cache)[0]).toBe(first);
      expect(queueOf(cache).inOrder(0)[0]?.key).toBe(`instances/${first}`);
    });
  }

  it('does not let a backlog outgrow the share of a project that comes later', () => {
    const backlog = Array.from({ length: 20 }, (_, i) => waiting({ name: `i${i}`, project: 'first', createdAtMs: 0 }));
    const cache = testCache([...full, ...backlog]);
    const line = queueOf(cache).dueLine({ agingMs });
    for (const key of queueOf(cache).keys()) line.add(key);
    for (let i = 0; i < 3; i++) place(cache, line.take() ?? '', 900);
    addRecord(cache, waiting({ name: 'late', project: 'second', createdAtMs: 910 }));
    line.add('instances/second/late');
    expect(line.take()).toBe('instances/second/late');
  });

  it('is that of a plain search through all that wait, whatever comes and goes', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const cache = testCache([...full, testProject('p1', { weight: 2 })]);
        const line = queueOf(cache).dueLine({ agingMs });
        const model = new Map<string, Instance>();
        const leftAtMs = new Map<string, number>();
        const groupOf = ({ metadata, spec }: Instance) => `${metadata.project} ${spec.priority} ${spec.cpus}`;
        let nowMs = 0;
        for (let step = 0; step < 60; step++) {
          nowMs += prng.below(60);
          if (model.size === 0 || prng.chance(3, 5)) {
            const project = `p${prng.below(3)}`;
            const instance = waiting({
              name: `i${step}`,
              project,
              priority: prng.below(3),
              createdAtMs: nowMs,
              cpus: 1 + prng.below(2),
            });
            addRecord(cache, instance);
            model.set(`instances/${project}/i${step}`, instance);
            line.add(`instances/${project}/i${step}`);
            continue;
          }
          const heads = new Map<string, { key: string; instance: Instance }>();
          for (const [key, instance] of model) {
            const head = heads.get(groupOf(instance));
            const age = instance.metadata.createdAtMs - (head?.instance.metadata.createdAtMs ?? 0);
            if (!head || age < 0 || (age === 0 && key < head.key)) heads.set(groupOf(instance), { key, instance });
          }
          const ranked = [...heads].map(([group, { key, instance }]) => {
            const { metadata, spec } = instance;
            const sinceMs = Math.max(metadata.createdAtMs, leftAtMs.get(group) ?? 0);
            let share = 0;
            for (const { value } of cache.list('allocation')) {
              if (value.consumer.project === metadata.project) share += Object.values(value.amounts)[0]?.['VCPU'] ?? 0;
            }
            return {
              key,
              group,
              level: (spec.priority ?? 0) - Math.floor(sinceMs / agingMs),
              share: share / (metadata.project === 'p1' ? 2 : 1),
              createdAtMs: metadata.createdAtMs,
            };
          });
          ranked.sort(
            (a, b) =>
              b.level - a.level || a.share - b.share || a.createdAtMs - b.createdAtMs || (a.key < b.key ? -1 : 1),
          );
          expect(queueOf(cache).inOrder(nowMs)[0]?.key).toBe(ranked[0]?.key);
          const first = line.take() ?? '';
          expect(first).toBe(ranked[0]?.key);
          if (prng.chance(1, 4)) {
            const held = [...cache.list('allocation')];
            const gone = held[prng.below(held.length)];
            if (gone) commitPlan(cache, { changes: release(gone) });
            line.add(first);
            continue;
          }
          place(cache, first, nowMs);
          model.delete(first);
          const group = ranked[0]?.group ?? '';
          if ([...model.values()].some((each) => groupOf(each) === group)) leftAtMs.set(group, nowMs);
          else leftAtMs.delete(group);
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('waking', () => {
  /** A host with 4 CPUs, all held; instances of `cpus` wait, and the woken ones are recorded. */
  function crowded(cpus: readonly number[]) {
    const cache = testCache([testImage(), ...testHost('h1', { capacity: { VCPU: 4, MEMORY_MB: 4096 } })]);
    for (let i = 0; i < 4; i++) {
      addRecord(cache, waiting({ name: `runs${i}` }));
      place(cache, `instances/default/runs${i}`);
    }
    for (const [i, each] of cpus.entries()) addRecord(cache, waiting({ name: `w${i}`, cpus: each, createdAtMs: i }));
    const woken: string[] = [];
    queueOf(cache);
    cache.onChange((change) => woken.push(...placement.wakes(change, cache)));
    const free = (count: number): void => {
      for (const allocation of [...cache.list('allocation')].slice(0, count))
        commitPlan(cache, { changes: release(allocation) });
    };
    return { cache, woken, free };
  }
  const named = (woken: readonly string[]) => woken.map((key) => key.slice('instances/default/'.length));

  it('wakes the first of each shape that fits now, and nobody else', () => {
    const { woken, free } = crowded([1, 1, 2, 2, 3]);
    free(1);
    expect(named(woken)).toEqual(['w0']);
    woken.length = 0;
    free(1);
    expect([...new Set(named(woken))]).toEqual(['w0', 'w2']);
  });

  it('wakes the next of a shape once the first is placed, as long as there is room', () => {
    const { cache, woken, free } = crowded([1, 1, 1, 1]);
    free(2);
    woken.length = 0;
    place(cache, 'instances/default/w0', 10);
    expect(named(woken)).toEqual(['w1']);
    woken.length = 0;
    place(cache, 'instances/default/w1', 11);
    expect(named(woken)).toEqual([]);
  });

  it('wakes a project when a host is dedicated to it, and nobody else', () => {
    const cache = testCache([testImage(), ...testHost('h1', { spec: { dedicated: true } })]);
    for (const project of ['ours', 'theirs']) addRecord(cache, waiting({ name: 'w', project }));
    const woken: string[] = [];
    queueOf(cache);
    cache.onChange((change) => woken.push(...placement.wakes(change, cache)));
    addRecord(cache, testHost('h1', { spec: { dedicatedTo: 'ours' } })[0]);
    expect([...new Set(woken)]).toEqual(['instances/ours/w']);
  });

  it('is not woken by what only takes, says or renames', () => {
    const { cache, woken } = crowded([1]);
    place(cache, 'instances/default/w0', 10);
    const host = cache.get('host', 'hosts/h1')?.value ?? expect.unreachable();
    addRecord(cache, { ...host, spec: { ...host.spec, paused: true } });
    addRecord(cache, host);
    expect(named(woken)).toEqual([]);
  });

  it('looks at those whose request is another now', () => {
    const { cache, woken } = crowded([]);
    addRecord(cache, testInstance('sized', { size: 'small' }));
    woken.length = 0;
    addRecord(cache, {
      kind: 'size',
      schemaVersion: 1,
      metadata: testImage('small').metadata,
      spec: { cpus: 1, memoryMiB: 16 },
      status: {},
    });
    expect(named(woken)).toEqual(['sized']);
  });
});

it('finds the first of ten thousand without a look at the others', () => {
  const cache = testCache([testImage(), ...testHost('h1', { capacity: { VCPU: 1, MEMORY_MB: 1024 } })]);
  addRecord(cache, waiting({ name: 'runs' }));
  place(cache, 'instances/default/runs');
  for (let i = 0; i < 10_000; i++) addRecord(cache, waiting({ name: `w${i}`, createdAtMs: i }));
  const woken: string[] = [];
  queueOf(cache);
  cache.onChange((change) => woken.push(...placement.wakes(change, cache)));
  for (const allocation of [...cache.list('allocation')]) commitPlan(cache, { changes: release(allocation) });
  expect(woken).toEqual(['instances/default/w0']);
  expect(queueOf(cache).length).toBe(10_000);
  expect(requestOf(cache, waiting({ name: 'w0' })).amounts).toEqual({ VCPU: 1, MEMORY_MB: 16 });
});
