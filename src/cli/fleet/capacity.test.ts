import { describe, expect, it } from 'vitest';
import type { Capacity } from '../../api/capacity.ts';
import { type Handler, runBerth } from '../testing.ts';

const capacity: Capacity = {
  hosts: 2,
  pools: [{ pool: '', hosts: 2, open: 1, classes: { VCPU: { capacity: 8, used: 3 } } }],
  sizes: [
    {
      size: 'small',
      amounts: { VCPU: 2 },
      more: 2,
      pools: [{ pool: '', more: 2 }],
      free: { VCPU: 5 },
      stranded: [
        { reason: 'InsufficientCpu', hosts: 1, free: { VCPU: 1 }, examples: [{ host: 'h1', message: 'too little' }] },
      ],
    },
  ],
  losses: [
    {
      losses: 1,
      checked: 2,
      of: 2,
      survived: 1,
      worst: [
        {
          hosts: ['h1'],
          instances: 3,
          unplaced: 1,
          examples: [{ instance: 'default/web', message: '0 of 1 host: 1 X' }],
        },
      ],
    },
  ],
};

describe('berth capacity', () => {
  it('shows how many more fit, what is stranded, and what a loss would do', async () => {
    const handler: Handler = ({ path }) => (path === '/v1/capacity' ? { json: capacity } : undefined);
    const { stdout, requests } = await runBerth(['capacity', '--losses', '1'], { handler });
    expect(requests[0]?.body).toEqual({ project: 'default', losses: 1 });
    expect(stdout.split('\n')).toEqual([
      'POOL  HOSTS  OPEN  CPUS  MEMORY  DISK',
      '-         2     1   3/8       -     -',
      '',
      'SIZE   REQUESTS  POOL  MORE',
      'small  2 CPUs    -        2',
      '',
      'Free, but not usable for small:',
      '  1 CPU on 1 host: InsufficientCpu, as h1: too little',
      '',
      'The loss of any one host: in 1 of 2 cases some instances would not fit:',
      '  h1: 1 of 3: default/web (0 of 1 host: 1 X)',
      '',
    ]);
  });

  it('asks for what the flags say', async () => {
    const handler: Handler = () => ({ json: { ...capacity, losses: [], sizes: [] } });
    const { requests, stdout } = await runBerth(['capacity', '-c', '2', '-m', '4GiB', '--pool', 'ci'], { handler });
    expect(requests[0]?.body).toMatchObject({ spec: { cpus: 2, memoryMiB: 4096, placement: { pool: 'ci' } } });
    expect(stdout).toContain('name the resources');
  });
});
