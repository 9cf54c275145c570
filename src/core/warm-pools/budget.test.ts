import { expect, it } from 'vitest';
import { fittingIn } from './budget.ts';

const asked = { VCPU: 2, MEMORY_MB: 512 };

it.each([
  ['no budget', undefined, Number.POSITIVE_INFINITY, undefined],
  ['a budget for other classes only', { DISK_GB: 5 }, Number.POSITIVE_INFINITY, undefined],
  ['5 VCPU of 2 each', { VCPU: 5 }, 2, 'spec.budget.VCPU is 5, and a guest asks for 2'],
  ['the scarcest of two', { VCPU: 8, MEMORY_MB: 1_024 }, 2, 'spec.budget.MEMORY_MB is 1024, and a guest asks for 512'],
  ['a number of instances', { INSTANCES: 3 }, 3, 'spec.budget.INSTANCES is 3, and a guest asks for 1'],
  ['less than one guest', { VCPU: 1 }, 0, 'spec.budget.VCPU is 1, and a guest asks for 2'],
] as const)('fits guests into %s', (_, budget, guests, limit) => {
  expect(fittingIn(budget, asked)).toEqual({ guests, ...(limit === undefined ? {} : { limit }) });
});
