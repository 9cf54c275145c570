import { expect, it } from 'vitest';
import { testHost } from '../testing.ts';
import { copiesOf } from './most.ts';
import type { ProviderRoom } from './tree.ts';

const [, root] = testHost('a', { capacity: { VCPU: 8, MEMORY_MB: 4096 } });
const inventory = { total: 1000, reserved: 0, minUnit: 1, maxUnit: 1000, stepSize: 1, allocationRatio: 1 };
const gpu = { ...root, id: 'gpu', parent: root.id, inventories: { CUSTOM_GPU_MILLI: inventory } };
const tree: readonly ProviderRoom[] = [root, gpu].map((provider) => ({ provider, used: new Map([['VCPU', 2]]) }));
const demand = (amounts: Record<string, number>) => ({ amounts, portions: [] });

it('says how many of a plain demand the root gives, whatever children there are', () => {
  expect(copiesOf(tree, demand({ VCPU: 1, MEMORY_MB: 512 }))).toBe(6);
  expect(copiesOf(tree, demand({ VCPU: 1, MEMORY_MB: 1024 }))).toBe(4);
});

it('leaves it to trying where a child has some of it', () => {
  expect(copiesOf(tree, demand({ CUSTOM_GPU_MILLI: 100 }))).toBe(1);
  expect(copiesOf(tree, { amounts: {}, portions: [{ amounts: { VCPU: 1 }, count: 1, traitsAnyOf: [] }] })).toBe(1);
});
