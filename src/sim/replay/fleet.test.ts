import { describe, expect, it } from 'vitest';
import { readFleet } from './fleet.ts';

const file = (...lines: readonly string[]) => new TextEncoder().encode(`${lines.join('\n')}\n`);

describe('a fleet', () => {
  it('is read from an openb list', () => {
    expect(
      readFleet(
        file('sn,cpu_milli,memory_mib,gpu,model', 'openb-0,64000,262144,2,P100', 'openb-1,32000,1024,0,'),
        'hosts.csv',
      ),
    ).toEqual([
      { name: 'openb-0', cpuMilli: 64_000, memoryMiB: 262_144, gpus: 2, gpuModel: 'P100' },
      { name: 'openb-1', cpuMilli: 32_000, memoryMiB: 1_024, gpus: 0, gpuModel: '' },
    ]);
  });

  it('is read from a list that tells no memory', () => {
    expect(readFleet(file('gpu_model,gpu_capacity_num,cpu_num,node_name', 'A10,1,128,17'), 'hosts.csv')).toEqual([
      { name: '17', cpuMilli: 128_000, memoryMiB: undefined, gpus: 1, gpuModel: 'A10' },
    ]);
  });

  it.each([
    ['another table', ['id,arrive_s', 'a,0'], 'line 1: not a list of hosts'],
    [
      'a host twice',
      ['sn,cpu_milli,memory_mib,gpu,model', 'a,1,1,0,', 'a,1,1,0,'],
      'line 3, column "sn": a second host "a"',
    ],
    [
      'no number',
      ['sn,cpu_milli,memory_mib,gpu,model', 'a,x,1,0,'],
      'line 2, column "cpu_milli": "x" is not a whole number',
    ],
    ['a missing column', ['sn,cpu_milli,gpu,model', 'a,1,0,'], 'line 1: no column "memory_mib"'],
  ])('refuses %s, saying where', (_, lines, message) => {
    expect(() => readFleet(file(...lines), 'hosts.csv')).toThrow(`cannot read hosts.csv, ${message}`);
  });
});
