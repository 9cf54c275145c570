// How hosts on one machine divide its room.

import { describe, expect, it } from 'vitest';
import { type OnMachine, shareOfMachine } from './machine-room.ts';

const measured = ['VCPU', 'MEMORY_MB', 'DISK_GB'];

function host(name: string, status: Partial<OnMachine['status']> = {}, spec: OnMachine['spec'] = {}): OnMachine {
  const capacity = { VCPU: 8, MEMORY_MB: 10_000, DISK_GB: 100 };
  return { name, spec, status: { capacity, reserved: { MEMORY_MB: 500 }, measured, diskId: '1', ...status } };
}

describe('the share of a host', () => {
  it.each<[string, OnMachine, OnMachine[], number[]]>([
    ['alone: all', host('a'), [], [8, 10_000, 100, 500]],
    ['of two: half', host('a'), [host('b')], [4, 5_000, 50, 250]],
    ['of three, the first: 8 = 3 + 3 + 2', host('a'), [host('b'), host('c')], [3, 3_334, 34, 167]],
    ['of three, the last', host('c'), [host('b'), host('a')], [2, 3_333, 33, 167]],
    [
      'the first is who registered first',
      host('b'),
      [host('a', { registeredAtMs: 2 }), host('c', { registeredAtMs: 1 })],
      [3, 3_334, 34, 167],
    ],
    ['of nine on 8 CPUs: one CPU', host('j'), 'abcdefgh'.split('').map((name) => host(name)), [1, 1_111, 11, 56]],
    [
      'beside a host that states 2 CPUs',
      host('a'),
      [host('b', { capacity: { VCPU: 2 }, measured: [] })],
      [6, 10_000, 100, 500],
    ],
    [
      'beside a host whose operator states 2 CPUs',
      host('a'),
      [host('b', {}, { inventory: { VCPU: { total: 2 } } })],
      [6, 5_000, 50, 250],
    ],
    [
      'beside a host that states all of it',
      host('a'),
      [host('b', { capacity: { MEMORY_MB: 20_000 }, measured: [] })],
      [8, 0, 100, 0],
    ],
    ['on a disk of its own', host('a'), [host('b', { diskId: '2' })], [4, 5_000, 100, 250]],
    ['that states its CPUs', host('a', { measured: ['MEMORY_MB', 'DISK_GB'] }), [host('b')], [8, 5_000, 50, 250]],
    [
      'whose operator states its CPUs: they replace it later',
      host('a', {}, { inventory: { VCPU: { total: 2 } } }),
      [host('b')],
      [8, 5_000, 50, 250],
    ],
    [
      'whose agent does not say what it measured',
      host('a', { measured: undefined }),
      [host('b')],
      [8, 10_000, 100, 500],
    ],
  ])('%s', (_what, of, others, [VCPU, MEMORY_MB, DISK_GB, kept]) => {
    const { capacity, reserved } = shareOfMachine(of, others);
    expect([capacity, reserved]).toEqual([{ VCPU, MEMORY_MB, DISK_GB }, { MEMORY_MB: kept }]);
  });

  it('adds up to the machine', () => {
    const all = 'abcde'.split('').map((name) => host(name));
    const shares = all.map(
      (each) =>
        shareOfMachine(
          each,
          all.filter((other) => other !== each),
        ).capacity?.['MEMORY_MB'] ?? 0,
    );
    expect(shares.reduce((sum, share) => sum + share)).toBe(10_000);
  });

  it('has a part of each NUMA cell, and devices only once', () => {
    const gpu = { name: 'gpu0', amounts: { CUSTOM_GPU_MILLI: 1000 }, traits: [] };
    const cell = { name: 'cell0', amounts: { VCPU: 8, MEMORY_MB: 10_000 }, traits: [] };
    const found = { providers: [gpu, cell], measured: [...measured, 'CUSTOM_GPU_MILLI'] };
    const [a, b] = [host('a', found), host('b', found)];
    const half = { ...cell, amounts: { VCPU: 4, MEMORY_MB: 5_000 } };
    expect(shareOfMachine(a, [b]).providers).toEqual([gpu, half]);
    expect(shareOfMachine(b, [a]).providers).toEqual([half]);
    const stated = { ...found, measured };
    expect(shareOfMachine(host('b', stated), [a]).providers).toEqual([gpu, half]);
  });
});
