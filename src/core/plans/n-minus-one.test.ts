import { describe, expect, it } from 'vitest';
import { finish } from '../scheduler/steps.ts';
import { addRecord, testFleet, testInstance } from '../testing.ts';
import { survivalOf } from './n-minus-one.ts';

/** Four instances with one CPU each on host a. */
function fleetOf(others: Parameters<typeof testFleet>[0]) {
  const memory = { MEMORY_MB: 16_384, DISK_GB: 100 };
  const cache = testFleet({ a: { capacity: { VCPU: 4, ...memory } }, ...others });
  const provider = cache.providersOfHost('a')[0]?.value.id ?? '';
  for (let i = 0; i < 4; i++) {
    const status = { phase: 'Running', host: 'a', incarnation: 1 } as const;
    const instance = testInstance(`i-${i}`, { cpus: 1, memoryMiB: 64 }, status);
    addRecord(cache, instance);
    addRecord(cache, {
      ...{ kind: 'allocation', host: 'a', driver: 'fake' },
      consumer: { id: instance.metadata.id, project: 'default', name: `i-${i}`, incarnation: 1 },
      amounts: { [provider]: { VCPU: 1, MEMORY_MB: 64 } },
    });
  }
  return cache;
}

describe('the loss of a host', () => {
  const rest = { MEMORY_MB: 16_384, DISK_GB: 100 };
  it.each<[string, Parameters<typeof testFleet>[0], string[]]>([
    ['is survived with 4 CPUs elsewhere', { b: { capacity: { VCPU: 4, ...rest } } }, []],
    ['is not with 3', { b: { capacity: { VCPU: 3, ...rest } } }, ['a']],
    ['is with 3 and 1', { b: { capacity: { VCPU: 3, ...rest } }, c: { capacity: { VCPU: 1, ...rest } } }, []],
    [
      'is with 1 CPU that counts four times, of which each claim may have 1',
      { b: { capacity: { VCPU: 1, ...rest }, spec: { allocationRatios: { VCPU: 4 } } } },
      [],
    ],
    [
      'is not with 1 CPU that counts three times',
      { b: { capacity: { VCPU: 1, ...rest }, spec: { allocationRatios: { VCPU: 3 } } } },
      ['a'],
    ],
  ])('%s', (_, others, notShown) => {
    expect(finish(survivalOf(fleetOf(others)))).toMatchObject({ hosts: 1, notShown });
  });
});
