import { describe, expect, it } from 'vitest';
import type { Allocation } from '../../state/records.ts';
import { testCache, testHost, testImage, testInstance } from '../../testing.ts';
import { fleetOf } from '../fleet.ts';
import { fullScan } from '../engine/full-scan.ts';
import { requestOf } from '../request.ts';

const capacity = { VCPU: 100, MEMORY_MB: 100_000 };

/** By host: the score for an instance of 10 CPUs and 1,000 MiB, when these amounts are held there. */
function points(held: Readonly<Record<string, { readonly VCPU: number; readonly MEMORY_MB: number } | null>>) {
  const names = Object.keys(held);
  const cache = testCache([testImage(), ...names.flatMap((name) => testHost(name, { capacity }))]);
  for (const [number, name] of names.entries()) {
    const amounts = held[name];
    if (!amounts) continue;
    const [host, provider] = testHost(name);
    const allocation: Allocation = {
      kind: 'allocation',
      consumer: { id: `inst_${number}`, incarnation: 1, project: 'default', name },
      host: host.metadata.name,
      amounts: { [provider.id]: amounts },
      driver: 'fake',
    };
    cache.apply([{ key: `allocations/inst_${number}.1`, value: allocation, revision: 1000 + number }], 1000 + number);
  }
  const spec = { cpus: 10, memoryMiB: 1000, placement: { profile: 'avoid-fragmentation' as const } };
  const request = requestOf(cache, testInstance('web', spec));
  return Object.fromEntries(
    [...fullScan(request, fleetOf(cache))].map(({ host, scores }) => [host, scores['tight-fit']]),
  );
}

describe('tight-fit', () => {
  it('takes hosts in use before empty ones', () => {
    expect(points({ empty: null, used: { VCPU: 1, MEMORY_MB: 1 } })).toEqual({ empty: 0, used: 50 });
  });
  it('does not tell apart hosts with a quarter left and more', () => {
    expect(points({ quarter: { VCPU: 65, MEMORY_MB: 1 }, most: { VCPU: 1, MEMORY_MB: 1 } })).toEqual({
      quarter: 50, // 25 of 100 left
      most: 50,
    });
  });
  it('prefers the host with the least left of what runs out first', () => {
    expect(
      points({
        cpus: { VCPU: 80, MEMORY_MB: 1 }, // 10 of 100 left: 50 + 50 × (1 - 4/10)
        memory: { VCPU: 1, MEMORY_MB: 94_000 }, // 5 of 100 left: 50 + 50 × (1 - 4/20)
        full: { VCPU: 90, MEMORY_MB: 1 },
      }),
    ).toEqual({ cpus: 80, memory: 90, full: 100 });
  });
});
