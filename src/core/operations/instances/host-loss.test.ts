import { expect, it } from 'vitest';
import { createInstance } from '../instance.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import { testCache, testContext, testHost, testImage, testInstance } from '../../testing.ts';

const create = (spec: Partial<InstanceSpec>, fencing = false) => {
  const cache = testCache([testImage(), ...testHost('h1')]);
  const full = { ...testInstance('web').spec, onHostLoss: 'replace' as const, ...spec };
  const policy = fencing ? { fencing: true } : {};
  return createInstance(cache, { project: 'default', name: 'web', labels: {}, spec: full }, testContext({ policy }));
};

it.each<[string, Partial<InstanceSpec>, boolean]>([
  ['that is not exclusive', {}, false],
  ['that is exclusive and asks for self-stop', { exclusive: true, selfStop: true }, false],
  ['that is exclusive, where hosts are fenced', { exclusive: true }, true],
  ['that is exclusive and waits', { exclusive: true, onHostLoss: 'wait' }, false],
])('accepts an instance %s', (_, spec, fencing) => {
  expect(create(spec, fencing).changed).toBe(true);
});

it.each<[string, Partial<InstanceSpec>, string]>([
  ['that is exclusive without a way to a proof', { exclusive: true }, 'set selfStop as well, or configure fencing'],
  ['with self-stop that is not exclusive', { selfStop: true }, 'selfStop is for exclusive instances'],
])('refuses an instance %s', (_, spec, why) => {
  expect(() => create(spec)).toThrow(why);
});
