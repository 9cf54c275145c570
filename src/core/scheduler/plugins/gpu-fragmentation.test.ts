import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Allocation, AnyRecord, Provider } from '../../state/records.ts';
import { addRecord, testCache, testHost, testImage, testInstance } from '../../testing.ts';
import { fleetOf } from '../fleet.ts';
import { requestOf } from '../request.ts';
import { schedule } from '../schedule.ts';

const placement = { profile: 'avoid-fragmentation' as const };

/** A host with a provider for each GPU, with these amounts left. */
function gpuHost(name: string, cpus: number, gpus: readonly number[], model = 'T4'): AnyRecord[] {
  const [host, root] = testHost(name, { capacity: { VCPU: cpus, MEMORY_MB: 1_000_000 } });
  return [
    host,
    root,
    ...gpus.map((milli, i): Provider => {
      const [, provider] = testHost(name, { capacity: { CUSTOM_GPU_MILLI: milli } });
      return { ...provider, id: `${root.id}-gpu${i}`, parent: root.id, traits: [`CUSTOM_GPU_${model}`] };
    }),
  ];
}

/** Pending instances: the typical requests. */
function waiting(count: number, spec: Partial<InstanceSpec>): AnyRecord[] {
  return Array.from({ length: count }, (_, i) => testInstance(`w${count}-${i}`, spec));
}

function chosen(records: readonly AnyRecord[], spec: Partial<InstanceSpec>): string | false {
  const cache = testCache([testImage(), ...records]);
  const placed = schedule(cache, requestOf(cache, testInstance('web', { memoryMiB: 1, placement, ...spec })));
  return placed.placed && placed.host;
}

const whole = { cpus: 2, memoryMiB: 1, gpus: { count: 1 } };
const half = { cpus: 1, memoryMiB: 1, gpus: { count: 1, share: 500 } };

describe('gpu-fragmentation', () => {
  it('leaves whole GPUs to those who ask for whole ones', () => {
    const hosts = [...gpuHost('a', 16, [1000]), ...gpuHost('b', 16, [500])];
    expect(chosen([...hosts, ...waiting(20, whole)], half)).toBe('b');
  });
  it('takes what nobody could use, even when it takes more', () => {
    // 300 of 800 left are useless; of 1000, exactly the half that others request would be left.
    const hosts = [...gpuHost('a', 16, [800]), ...gpuHost('b', 16, [1000])];
    expect(chosen([...hosts, ...waiting(20, half)], half)).toBe('b');
  });
  it('keeps CPUs beside free GPUs', () => {
    const hosts = [...gpuHost('a', 4, [1000, 1000]), ...gpuHost('b', 16, [1000, 1000])];
    expect(chosen([...hosts, ...waiting(20, whole)], { cpus: 2 })).toBe('b');
  });
  it('keeps hosts with GPUs for those who ask for some', () => {
    const hosts = [...gpuHost('a', 4, [1000, 1000]), ...testHost('b', { capacity: { VCPU: 4, MEMORY_MB: 100 } })];
    expect(chosen([...hosts, ...waiting(20, whole)], { cpus: 2 })).toBe('b');
  });
  it('spares the model that others insist on', () => {
    const hosts = [...gpuHost('a', 16, [1000], 'A100'), ...gpuHost('b', 16, [1000])];
    const picky = { ...whole, gpus: { count: 1, models: ['A100'] } };
    expect(chosen([...hosts, ...waiting(20, picky), ...waiting(10, half)], whole)).toBe('b');
  });
  it('takes a host in use where nothing else tells hosts apart', () => {
    const records = [...gpuHost('a', 16, [1000, 1000]), ...gpuHost('b', 16, [1000, 1000])];
    const cache = testCache([testImage(), ...records, ...waiting(20, whole)]);
    const [, root] = testHost('b');
    const allocation: Allocation = {
      kind: 'allocation',
      consumer: { id: 'inst_1', incarnation: 1, project: 'default', name: 'there' },
      host: 'b',
      amounts: { [root.id]: { MEMORY_MB: 1000 } },
      driver: 'fake',
    };
    cache.apply([{ key: 'allocations/inst_1.1', value: allocation, revision: 1000 }], 1000);
    const request = requestOf(cache, testInstance('web', { ...whole, placement }));
    expect(schedule(cache, request)).toMatchObject({ host: 'b' });
  });
  it('costs those nothing who do not weigh it', () => {
    const cache = testCache([testImage(), ...gpuHost('a', 16, [1000])]);
    schedule(cache, requestOf(cache, testInstance('web', whole)));
    const fleet = fleetOf(cache);
    const { layout } = fleet;
    for (const record of waiting(50, half)) addRecord(cache, record);
    expect(fleet.layout).toBe(layout);
  });
  it('says nothing where no host has GPUs', () => {
    const cache = testCache([testImage(), ...testHost('a')]);
    const request = requestOf(cache, testInstance('web', { placement }));
    expect(schedule(cache, request)).toMatchObject({ placed: true, score: 0 }); // tight-fit of an empty host
    expect(fleetOf(cache).column('CUSTOM_GPU_MILLI')).toBeUndefined();
  });
});
