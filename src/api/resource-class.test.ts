import { expect, it } from 'vitest';
import { classFault, instancesClass } from './resource-class.ts';

it.each(['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_GPU_MILLI', 'CUSTOM_LICENSE'])('knows %s', (resourceClass) => {
  expect(classFault(resourceClass)).toBeUndefined();
});

it.each([
  ['CPU', 'VCPU'],
  ['VCPUS', 'VCPU'],
  ['MEMORY', 'MEMORY_MB'],
  ['MEMORY_GB', 'MEMORY_MB'],
  ['DISK', 'DISK_GB'],
  ['GPU', 'CUSTOM_GPU_MILLI'],
  ['vcpu', 'VCPU'],
])('asks of %s whether %s was meant', (typed, meant) => {
  expect(classFault(typed)).toBe(`there is no resource class "${typed}"; did you mean "${meant}"?`);
});

it('names what there is when nothing is near', () => {
  expect(classFault('BANANAS')).toBe(
    'there is no resource class "BANANAS"; known: VCPU, MEMORY_MB, DISK_GB, CUSTOM_GPU_MILLI, others of OpenStack, and CUSTOM_...',
  );
});

it('takes INSTANCES only where they are counted', () => {
  expect(classFault(instancesClass, [instancesClass])).toBeUndefined();
  expect(classFault(instancesClass)).toBe('INSTANCES counts in quotas only');
});
