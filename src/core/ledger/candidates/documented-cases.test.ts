// The cases that OpenStack Placement's own API tests state for these two fleets (granular.yaml, granular-same-subtree.yaml), in
// numbers of candidates and by the providers that give something.

import { describe, expect, it } from 'vitest';
import type { CandidateGroup, CandidateQuestion } from '../candidate-question.ts';
import { findCandidates } from './search.ts';
import { testGroup as group, testIndex, testQuestion as ask } from './testing.ts';

const shares = 'MISC_SHARES_VIA_AGGREGATE';
const node = { VCPU: 8, MEMORY_MB: 4096 };
const net = { SRIOV_NET_VF: 8, CUSTOM_NET_MBPS: 4000 };
const gpu = 'HW_GPU_API_DXVA';
const ssd = 'CUSTOM_DISK_SSD';

interface Case {
  readonly name: string;
  readonly groups: readonly CandidateGroup[];
  readonly more?: Partial<CandidateQuestion>;
  readonly count: number;
  /** Of each candidate, the providers in alphabetical order. */
  readonly from?: readonly string[];
}

function check(index: ReturnType<typeof testIndex>, cases: readonly Case[]): void {
  it.each(cases)('$name: $count', ({ groups, more, count, from }) => {
    const { requests, complete } = findCandidates(index, ask(groups, more));
    expect(complete).toBe(true);
    expect(requests).toHaveLength(count);
    if (from) expect(requests.map(({ allocations }) => Object.keys(allocations).sort().join(' ')).sort()).toEqual(from);
  });
}

describe('three hosts with shared disks and a shared network', () => {
  const fleet = testIndex([
    { id: 'left', totals: { ...node, ...net, DISK_GB: 500, VGPU: 8 }, traits: [gpu], aggregates: ['a'] },
    { id: 'middle', totals: { ...node, ...net }, traits: ['HW_CPU_X86_SSE'], aggregates: ['a', 'b'] },
    { id: 'right', totals: { ...node, DISK_GB: 500, VGPU: 2 }, traits: [gpu, ssd], aggregates: ['b', 'c'] },
    { id: 'disk1', totals: { DISK_GB: 1000 }, traits: [shares, ssd], aggregates: ['a'] },
    { id: 'disk2', totals: { DISK_GB: 1000 }, traits: [shares], aggregates: ['a', 'b'] },
    { id: 'net', totals: { SRIOV_NET_VF: 16, CUSTOM_NET_MBPS: 40_000 }, traits: [shares], aggregates: ['c'] },
  ]);
  const isolate = { groupPolicy: 'isolate' } as const;
  const compute = group('1', { VCPU: 1, MEMORY_MB: 1024 });
  const disk = (changes: Partial<CandidateGroup> = {}): CandidateGroup => group('2', { DISK_GB: 100 }, changes);

  check(fleet, [
    { name: 'two groups', groups: [group('1', { VCPU: 1 }), group('2', { MEMORY_MB: 1024 })], count: 3 },
    {
      name: 'two groups, isolated',
      groups: [group('1', { VCPU: 1 }), group('2', { MEMORY_MB: 1024 })],
      more: isolate,
      count: 0,
    },
    {
      name: 'groups that add up',
      groups: [group('', { VCPU: 3, MEMORY_MB: 512 }), compute, group('2', { VCPU: 2 })],
      count: 3,
      from: ['left', 'middle', 'right'],
    },
    {
      name: 'a disk of another provider',
      groups: [compute, disk()],
      more: isolate,
      count: 5,
      from: ['disk1 left', 'disk1 middle', 'disk2 left', 'disk2 middle', 'disk2 right'],
    },
    { name: 'any disk', groups: [compute, disk()], count: 7 },
    { name: 'a disk alone', groups: [group('1', { DISK_GB: 800 })], count: 2, from: ['disk1', 'disk2'] },
    { name: 'a disk alone, in no group', groups: [group('', { DISK_GB: 800 })], count: 2, from: ['disk1', 'disk2'] },
    {
      name: 'an SSD of another provider',
      groups: [compute, disk({ required: [[ssd]] })],
      more: isolate,
      count: 2,
      from: ['disk1 left', 'disk1 middle'],
    },
    {
      name: 'no SSD',
      groups: [group('1', { VCPU: 1 }), disk({ forbidden: [ssd] })],
      count: 4,
      from: ['disk2 left', 'disk2 middle', 'disk2 right', 'left'],
    },
    {
      name: 'a disk in an aggregate',
      groups: [group('1', { VCPU: 1 }), disk({ memberOf: [['c']] })],
      count: 1,
      from: ['right'],
    },
    {
      name: 'required, forbidden, and one of two aggregates',
      groups: [
        group('1', { VCPU: 1 }, { forbidden: ['HW_CPU_X86_SSE'] }),
        disk({ required: [[ssd]], memberOf: [['a', 'c']] }),
      ],
      count: 2,
      from: ['disk1 left', 'right'],
    },
    {
      name: 'two lists of aggregates',
      groups: [group('1', { VCPU: 1 }), disk({ memberOf: [['a'], ['b', 'c']] })],
      more: isolate,
      count: 3,
      from: ['disk2 left', 'disk2 middle', 'disk2 right'],
    },
    {
      name: 'several disks and networks',
      groups: [
        group('1', { VCPU: 1 }),
        group('2', { VGPU: 1 }, { required: [[gpu]] }),
        group('3', { MEMORY_MB: 1024 }),
        group('4', { DISK_GB: 100 }, { required: [[ssd]] }),
        group('5', { DISK_GB: 50 }, { forbidden: [ssd] }),
        group('6', { SRIOV_NET_VF: 1, CUSTOM_NET_MBPS: 1000 }),
        group('7', { SRIOV_NET_VF: 2, CUSTOM_NET_MBPS: 2000 }),
      ],
      count: 3,
      from: ['disk1 disk2 left', 'disk1 left', 'disk2 net right'],
    },
  ]);
});

describe('hosts with cells, accelerators and network functions', () => {
  const pf = (id: string, nic: string, CUSTOM_VF: number, physnet: 1 | 2) => ({
    id,
    parent: nic,
    totals: { CUSTOM_VF },
    traits: [`PHYSNET${physnet}`],
  });
  const fleet = testIndex([
    { id: 'ss1', totals: { DISK_GB: 2000 }, traits: [shares], aggregates: ['a'] },
    { id: 'cn1', traits: ['MULTI_ATTACH'], aggregates: ['a'] },
    {
      id: 'numa0',
      parent: 'cn1',
      totals: { VCPU: 4, MEMORY_MB: 2048 },
      used: { VCPU: 2 },
      units: { MEMORY_MB: { minUnit: 512, stepSize: 256 } },
      traits: ['NUMA_ROOT'],
    },
    {
      id: 'numa1',
      parent: 'cn1',
      totals: { VCPU: 4, MEMORY_MB: 2048 },
      units: { MEMORY_MB: { minUnit: 256, maxUnit: 1024 } },
      traits: ['NUMA_ROOT', 'FOO'],
    },
    { id: 'fpga0', parent: 'numa0', totals: { CUSTOM_FPGA: 1 } },
    { id: 'fpga1_0', parent: 'numa1', totals: { CUSTOM_FPGA: 1 } },
    { id: 'fpga1_1', parent: 'numa1', totals: { CUSTOM_FPGA: 1 } },
    {
      id: 'cn2',
      totals: { VCPU: 8, MEMORY_MB: 2048, DISK_GB: 1000 },
      used: { VCPU: 3 },
      units: { MEMORY_MB: { minUnit: 1024, stepSize: 128 } },
      traits: ['FOO'],
      aggregates: ['a'],
    },
    ...['nic1', 'nic2', 'nic3'].map((id) => ({ id, parent: 'cn2', traits: ['NIC_ROOT'] })),
    pf('pf1_1', 'nic1', 4, 1),
    pf('pf1_2', 'nic1', 4, 2),
    pf('pf2_1', 'nic2', 2, 1),
    pf('pf2_2', 'nic2', 2, 2),
    pf('pf2_3', 'nic2', 2, 1),
    pf('pf2_4', 'nic2', 2, 2),
    pf('pf3_1', 'nic3', 8, 1),
  ]);
  const cpu = group('_cpu', { VCPU: 1 });
  const accel = group('_accel', { CUSTOM_FPGA: 1 });
  const port = (suffix: string, CUSTOM_VF: number, physnet: 1 | 2): CandidateGroup =>
    group(suffix, { CUSTOM_VF }, { required: [[`PHYSNET${physnet}`]] });
  const nic = group('_nic', {}, { required: [['NIC_ROOT']] });
  const isolate = 'isolate' as const;

  check(fleet, [
    { name: 'without a subtree', groups: [cpu, accel], count: 6 },
    { name: 'a subtree of one group', groups: [cpu, accel], more: { sameSubtree: [['_cpu']] }, count: 6 },
    {
      name: 'a subtree of both',
      groups: [cpu, accel],
      more: { sameSubtree: [['_cpu', '_accel']] },
      count: 3,
      from: ['fpga0 numa0', 'fpga1_0 numa1', 'fpga1_1 numa1'],
    },
    {
      name: 'a subtree of one provider',
      groups: [cpu, group('_memory', { MEMORY_MB: 1024 })],
      more: { sameSubtree: [['_cpu', '_memory']] },
      count: 3,
      from: ['cn2', 'numa0', 'numa1'],
    },
    {
      name: 'the same, isolated',
      groups: [cpu, group('_memory', { MEMORY_MB: 1024 })],
      more: { sameSubtree: [['_cpu', '_memory']], groupPolicy: isolate },
      count: 0,
    },
    {
      name: 'ports of any NIC',
      groups: [group('', { VCPU: 1 }), port('_1', 4, 1), port('_2', 4, 2)],
      count: 2,
      from: ['cn2 pf1_1 pf1_2', 'cn2 pf1_2 pf3_1'],
    },
    {
      name: 'ports of one NIC, 4 functions each',
      groups: [group('', { VCPU: 1 }), nic, port('_1', 4, 1), port('_2', 4, 2)],
      more: { sameSubtree: [['_nic', '_1', '_2']] },
      count: 1,
      from: ['cn2 pf1_1 pf1_2'],
    },
    {
      name: 'ports of one NIC, 2 functions each',
      groups: [group('', { VCPU: 1 }), nic, port('_1', 2, 1), port('_2', 2, 2)],
      more: { sameSubtree: [['_nic', '_1', '_2']], groupPolicy: isolate },
      count: 5,
    },
    {
      name: 'ports of one NIC, 2 + 1 + 1',
      groups: [group('', { VCPU: 1 }), nic, port('_1', 2, 1), port('_2a', 1, 2), port('_2b', 1, 2)],
      more: { sameSubtree: [['_nic', '_1', '_2a', '_2b']] },
      count: 9,
    },
    {
      name: 'the same, isolated',
      groups: [group('', { VCPU: 1 }), nic, port('_1', 2, 1), port('_2a', 1, 2), port('_2b', 1, 2)],
      more: { sameSubtree: [['_nic', '_1', '_2a', '_2b']], groupPolicy: isolate },
      count: 4,
    },
    {
      name: 'several groups without resources',
      groups: [cpu, group('_foo', {}, { required: [['FOO']] }), group('_numa', {}, { required: [['NUMA_ROOT']] })],
      more: { sameSubtree: [['_cpu', '_foo', '_numa']] },
      count: 1,
      from: ['numa1'],
    },
  ]);
});
