import { expect, it } from 'vitest';
import { garbage } from '../controllers/garbage.ts';
import { createInstance, deleteInstance } from '../operations/instance.ts';
import type { Cache } from '../state/cache.ts';
import { chargedTo } from './quotas.ts';
import { commitPlan, testCache, testContext, testImage, testInstance, testProject } from '../testing.ts';

let made = 0;
const ctx = () => testContext({ newId: (prefix) => `${prefix}_${++made}` });
const create = (cache: Cache, name: string, spec: { cpus?: number; priority?: number } = {}) => {
  const decision = createInstance(
    cache,
    { project: 'default', name, labels: {}, spec: testInstance(name, { cpus: 1, memoryMiB: 64, ...spec }).spec },
    ctx(),
  );
  commitPlan(cache, decision.plan);
};

it('refuses what goes beyond, by the class that is short', () => {
  const cache = testCache([testImage(), testProject('default', { quota: { VCPU: 3 } })]);
  create(cache, 'a', { cpus: 2 });
  expect(() => create(cache, 'b', { cpus: 2 })).toThrow('project "default" has 2 of 3 VCPU, and 2 more are requested');
  create(cache, 'c', { cpus: 1 });
});

it('tells what is charged, placed or not', () => {
  const cache = testCache([testImage()]);
  expect(chargedTo(cache, 'default')).toEqual({});
  create(cache, 'a', { cpus: 2 });
  create(cache, 'b', { cpus: 1 });
  expect(chargedTo(cache, 'default')).toEqual({ VCPU: 3, MEMORY_MB: 128, INSTANCES: 2 });
});

it('gives back what is gone', () => {
  const cache = testCache([testImage(), testProject('default', { quota: { INSTANCES: 1 } })]);
  create(cache, 'a');
  expect(() => create(cache, 'b')).toThrow('INSTANCES');
  commitPlan(cache, deleteInstance(cache, { project: 'default', name: 'a' }, ctx()).plan);
  expect(() => create(cache, 'b')).toThrow('INSTANCES');
  commitPlan(cache, garbage.reconcile(cache, 'instances/default/a', ctx()));
  create(cache, 'b');
});

it('lets two creates on the same count collide', () => {
  const cache = testCache([testImage(), testProject('default', { quota: { INSTANCES: 1 } })]);
  const spec = testInstance('x', { cpus: 1 }).spec;
  const [first, second] = ['a', 'b'].map((name) =>
    createInstance(cache, { project: 'default', name, labels: {}, spec }, ctx()),
  );
  commitPlan(cache, first?.plan ?? expect.unreachable());
  expect(() => commitPlan(cache, second?.plan ?? expect.unreachable())).toThrow('gates/quota/default');
});

it('holds priorities to what the project may ask for', () => {
  const cache = testCache([testImage(), testProject('default', { priorityMax: 5 })]);
  create(cache, 'a', { priority: 5 });
  expect(() => create(cache, 'b', { priority: 6 })).toThrow('may request priority 5 at most');
});
