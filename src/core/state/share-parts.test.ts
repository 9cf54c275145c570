import { describe, expect, it } from 'vitest';
import { testHost } from '../testing.ts';
import { decodeRecord, encodeRecord } from './codec.ts';
import type { Allocation, AnyRecord } from './records.ts';

const allocation = (id: string): Allocation => ({
  kind: 'allocation',
  consumer: { id, incarnation: 1, project: 'default', name: `web-${id}` },
  host: 'host-1',
  amounts: { rp_1: { VCPU: 2, MEMORY_MB: 512 } },
  driver: 'qemu',
});

const decoded = (values: readonly Uint8Array[]): readonly AnyRecord[] =>
  values.map((value, i) => decodeRecord(`${i}`, value));

describe('records that are read', () => {
  it('keeps traits that many providers have alike once', () => {
    const [, provider] = testHost('h1');
    const traits = ['CUSTOM_GPU_A10'];
    const [first, second] = decoded(['a', 'b'].map((id) => encodeRecord({ ...provider, id, traits })));
    if (first?.kind !== 'provider' || second?.kind !== 'provider') throw new Error('a provider is one when read');
    expect(second.traits).toEqual(traits);
    expect(second.traits).toBe(first.traits);
  });

  it('gives back what was written, with equal parts kept once', () => {
    const [first, second] = decoded(['a', 'b'].map((id) => encodeRecord(allocation(id))));
    expect(first).toEqual(allocation('a'));
    expect(second).toEqual(allocation('b'));
    if (first?.kind !== 'allocation' || second?.kind !== 'allocation')
      throw new Error('an allocation is one when read');
    expect(second.amounts['rp_1']).toBe(first.amounts['rp_1']);
  });
});
