import { expect, it } from 'vitest';
import type { InstanceSpec } from '../../../src/api/resources/instance.ts';
import { specAsking } from './spec-asking.ts';

const spec = { image: 'tiny', cpus: 8, memoryMiB: 512 } as unknown as InstanceSpec; // what is looked at

it('changes the amounts that are asked for, and leaves the rest', () => {
  expect(specAsking(spec, { VCPU: 4, DISK_GB: 10 })).toEqual({ image: 'tiny', cpus: 4, memoryMiB: 512, diskGiB: 10 });
});

it('is none where the spec has no field for an amount', () => {
  expect(specAsking(spec, { VCPU: 4, CUSTOM_GPU_MILLI: 1000 })).toBeUndefined();
});
