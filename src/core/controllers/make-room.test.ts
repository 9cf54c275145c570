// Preemption takes the fewest instances and respects guarantees; large instances get their turn.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededPrng } from '../../base/prng.ts';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { release } from '../ledger/ledger.ts';
import { choosePreemption } from '../queue/preemption.ts';
import { queueOf } from '../queue/queue.ts';
import { explain } from '../explain/explain.ts';
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
import { placement } from './placement.ts';
import { restart } from './restart.ts';

let made = 0;
const ctx = (nowMs: number) =>
  testContext({
    nowMs,
    monotonicMs: nowMs,
    policy: { starvationMs: 1000, nominationMs: 500 },
    newId: (prefix) => `${prefix}_${++made}`,
  });
const keyOf = (name: string, project = 'default') => `instances/${project}/${name}`;
const host = (name: string, cpus: number, memoryMiB = 102_400) =>
  testHost(name, { capacity: { VCPU: cpus, MEMORY_MB: memoryMiB } });
const statusOf = (cache: Cache, name: string, project?: string) =>
  cache.get('instance', keyOf(name, project))?.value.status ?? expect.unreachable();

function add(cache: Cache, name: string, spec: Partial<InstanceSpec>, { project = 'default', atMs = 0 } = {}): void {
  const meta = { id: `inst_${project}${name}`, project, createdAtMs: atMs };
  addRecord(cache, testInstance(name, { cpus: 1, memoryMiB: 16, ...spec }, {}, meta));
}

function look(cache: Cache, name: string, atMs: number, project?: string) {
  const plan = placement.reconcile(cache, keyOf(name, project), ctx(atMs));
  commitPlan(cache, plan);
  return plan;
}

describe('preemption', () => {
  const urgent = { priority: 10, preemption: 'LowerPriority' } as const;

  it.each([
    ['it asks for that', urgent, ['default/b']],
    ['it does not', { priority: 10 }, undefined],
    ['none is of lower priority', { ...urgent, priority: 0 }, undefined],
    ['no one helps', { ...urgent, cpus: 5 }, undefined],
  ])('is foretold as it then happens, when %s', (_, wish, instances) => {
    const cache = testCache([testImage(), ...host('h1', 4)]);
    for (const [name, cpus] of [
      ['a', 1],
      ['b', 3],
    ] as const) {
      add(cache, name, { cpus });
      look(cache, name, 0);
    }
    const spec = { cpus: 2, memoryMiB: 16, ...wish };
    const foretold = explain(cache, testInstance('big', spec));
    expect(foretold.preemption).toEqual(instances && { host: 'h1', instances });
    if (instances)
      expect(foretold.summary).toMatch(
        /^fits on h1 once default\/b \(of lower priority\) is stopped for it; now: 0 of 1/,
      );
    add(cache, 'big', spec);
    look(cache, 'big', 0);
    const stopped = ['a', 'b'].filter((name) => statusOf(cache, name).phase === 'Failed');
    expect(stopped.map((name) => `default/${name}`)).toEqual(instances ?? []);
    expect(statusOf(cache, 'big').nomination?.host).toBe(instances && 'h1');
  });

  it('stops the fewest, holds their room until they are gone, and is placed then', () => {
    const cache = testCache([testImage(), ...host('h1', 4)]);
    for (const [name, cpus] of [
      ['a', 1],
      ['b', 2],
      ['c', 1],
    ] as const) {
      add(cache, name, { cpus, restartPolicy: 'OnFailure' });
      look(cache, name, 1);
    }
    add(cache, 'x', { ...urgent, cpus: 2 });
    look(cache, 'x', 2);
    expect(['a', 'b', 'c'].map((name) => statusOf(cache, name).phase)).toEqual(['Scheduled', 'Failed', 'Scheduled']);
    expect(statusOf(cache, 'x')).toMatchObject({ phase: 'Pending', nomination: { host: 'h1' } });
    expect(look(cache, 'x', 3).changes).toEqual([]);
    commitPlan(cache, restart.reconcile(cache, keyOf('b'), ctx(100_000)));
    for (const allocation of cache.allocationsOfConsumer('inst_defaultb'))
      commitPlan(cache, { changes: release(allocation) });
    look(cache, 'b', 100_001);
    expect(statusOf(cache, 'b').conditions[0]?.message).toBe('0 of 1 host: 1 Nominated');
    look(cache, 'x', 100_002);
    expect(statusOf(cache, 'x')).toMatchObject({ phase: 'Scheduled', host: 'h1' });
    expect(statusOf(cache, 'x').nomination).toBeUndefined();
  });

  const spared: readonly { readonly name: string; readonly spec: Partial<InstanceSpec> }[] = [
    { name: 'of the same priority', spec: { priority: 10 } },
    { name: 'exclusive', spec: { exclusive: true } },
    { name: 'of a gang', spec: { gang: { name: 'g', size: 1 } } },
  ];
  for (const { name, spec } of spared) {
    it(`spares what is ${name}`, () => {
      const cache = testCache([testImage(), ...host('h1', 1)]);
      add(cache, 'a', spec);
      look(cache, 'a', 1);
      add(cache, 'x', urgent);
      look(cache, 'x', 2);
      expect(statusOf(cache, 'a').phase).toBe('Scheduled');
      expect(statusOf(cache, 'x').nomination).toBeUndefined();
    });
  }

  it('needs no victims where one is leaving already', () => {
    const cache = testCache([testImage(), ...host('h1', 2)]);
    for (const name of ['a', 'b']) {
      add(cache, name, {});
      look(cache, name, 1);
    }
    add(cache, 'x', urgent);
    look(cache, 'x', 2);
    add(cache, 'y', { ...urgent, priority: 20 });
    look(cache, 'y', 3);
    expect(['a', 'b'].filter((name) => statusOf(cache, name).phase === 'Failed')).toHaveLength(1);
  });

  it('takes as few as a search through all sets finds, and never what is guaranteed', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const prng = seededPrng(seed);
        const least = prng.below(6);
        const cache = testCache([
          testImage(),
          ...host('h1', 6, 6000),
          ...host('h2', 5, 5000),
          testProject('safe', { guarantee: { VCPU: least } }),
        ]);
        const names: { name: string; project: string }[] = [];
        for (let i = 0; i < 10; i++) {
          const project = prng.chance(1, 2) ? 'safe' : 'other';
          add(
            cache,
            `i${i}`,
            { cpus: 1 + prng.below(2), memoryMiB: 500 * (1 + prng.below(4)), priority: prng.below(4) },
            { project, atMs: i },
          );
          look(cache, `i${i}`, 1, project);
          if (statusOf(cache, `i${i}`, project).host !== undefined) names.push({ name: `i${i}`, project });
        }
        const asking = testInstance('x', {
          cpus: 1 + prng.below(5),
          memoryMiB: 500 * (1 + prng.below(8)),
          priority: 3,
        });
        const request = requestOf(cache, asking);
        const running = names.map(
          ({ name, project }) => cache.get('instance', keyOf(name, project))?.value ?? expect.unreachable(),
        );
        const cpusOf = (project: string, gone: readonly string[]) =>
          running
            .filter(({ metadata }) => metadata.project === project && !gone.includes(metadata.id))
            .reduce((sum, { status }) => sum + (status.assigned?.['VCPU'] ?? 0), 0);
        let fewest = Number.POSITIVE_INFINITY;
        for (const [at, cpus, memoryMiB] of [
          ['h1', 6, 6000],
          ['h2', 5, 5000],
        ] as const) {
          const here = running.filter(({ status }) => status.host === at);
          for (let set = 0; set < 1 << here.length; set++) {
            const gone = here.filter((_, i) => (set >> i) & 1);
            if (gone.length >= fewest || gone.some(({ spec }) => (spec.priority ?? 0) >= 3)) continue;
            const ids = gone.map(({ metadata }) => metadata.id);
            if (gone.some(({ metadata }) => metadata.project === 'safe') && cpusOf('safe', ids) < least) continue;
            const stay = here.filter((each) => !gone.includes(each));
            const held = (name: string) => stay.reduce((sum, { status }) => sum + (status.assigned?.[name] ?? 0), 0);
            if (
              held('VCPU') + (request.assigned['VCPU'] ?? 0) <= cpus &&
              held('MEMORY_MB') + (request.assigned['MEMORY_MB'] ?? 0) <= memoryMiB
            )
              fewest = gone.length;
          }
        }
        fc.pre(fewest > 0); // a request that fits as it is preempts no instance
        const found = choosePreemption(cache, request);
        expect(found?.victims.length ?? Number.POSITIVE_INFINITY).toBe(fewest);
        const ids = found?.victims.map(({ value }) => value.metadata.id) ?? [];
        if (found?.victims.some(({ value }) => value.metadata.project === 'safe'))
          expect(cpusOf('safe', ids)).toBeGreaterThanOrEqual(least);
      }),
      { numRuns: 150 },
    );
  });
});

describe('starvation', () => {
  it('keeps room for one that smaller ones overtake, until it fits', () => {
    const cache = testCache([testImage(), ...host('h1', 2)]);
    for (const name of ['a', 'b']) {
      add(cache, name, {});
      look(cache, name, 1);
    }
    add(cache, 'big', { cpus: 2 }, { atMs: 10 });
    expect(look(cache, 'big', 10).requeueAfterMs).toBe(1000);
    look(cache, 'big', 1010);
    expect(statusOf(cache, 'big').nomination).toEqual({ host: 'h1', untilMs: 1510 });
    add(cache, 'small', {}, { atMs: 20 });
    for (const name of ['a', 'b']) {
      for (const allocation of cache.allocationsOfConsumer(`inst_default${name}`))
        commitPlan(cache, { changes: release(allocation) });
      look(cache, 'small', 1100);
      expect(statusOf(cache, 'small').host).toBeUndefined();
    }
    look(cache, 'big', 1200);
    expect(statusOf(cache, 'big').host).toBe('h1');
  });

  it('lets go after a while, and wakes those who were kept out', () => {
    const cache = testCache([testImage(), ...host('h1', 2)]);
    for (const name of ['a', 'b']) {
      add(cache, name, {});
      look(cache, name, 1);
    }
    add(cache, 'big', { cpus: 2 }, { atMs: 10 });
    look(cache, 'big', 10);
    look(cache, 'big', 1010);
    for (const allocation of cache.allocationsOfConsumer('inst_defaulta'))
      commitPlan(cache, { changes: release(allocation) });
    add(cache, 'small', {}, { atMs: 20 });
    look(cache, 'small', 1100);
    const woken: string[] = [];
    queueOf(cache);
    cache.onChange((change) => woken.push(...placement.wakes(change, cache)));
    look(cache, 'big', 1510);
    expect(statusOf(cache, 'big').nomination).toBeUndefined();
    expect(woken).toContain(keyOf('small'));
  });
});
