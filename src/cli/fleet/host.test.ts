import { describe, expect, it } from 'vitest';
import { lists } from '../test-fleet.ts';
import { type Handler, runBerth, testHost } from '../testing.ts';

describe('berth host', () => {
  it('ls shows states, drivers and what runs where', async () => {
    const classes = {
      VCPU: { capacity: 8, used: 3, most: 5 },
      MEMORY_MB: { capacity: 15_360, used: 1024, most: 14_336 },
    };
    const handler: Handler = (request) =>
      request.path === '/v1/usage' ? { json: { items: [{ host: 'h1', consumers: 1, classes }] } } : lists(request);
    const { stdout } = await runBerth(['host', 'ls'], { handler });
    expect(stdout).toBe(
      [
        'NAME  STATE   SINCE  POOL  CPUS        MEMORY     DISK  DRIVERS   INSTANCES  AGE',
        'h1    Ready     60s  -      3/8  1 GiB/15 GiB  100 GiB  qemu/tcg          1   2h',
        'h2    Paused    60s  ci       8        16 GiB  100 GiB  qemu/tcg          0   2h',
        '',
      ].join('\n'),
    );
  });

  it('ls shows GPUs, and shares of them, where there are any', async () => {
    const classes = { CUSTOM_GPU_MILLI: { capacity: 4000, used: 1500, most: 1000 } };
    const handler: Handler = (request) =>
      request.path === '/v1/usage' ? { json: { items: [{ host: 'h1', consumers: 2, classes }] } } : lists(request);
    const { stdout } = await runBerth(['host', 'ls'], { handler });
    expect(stdout.split('\n').map((line) => line.split(/\s{2,}/)[7])).toEqual(['GPUS', '1.5/4', '-', undefined]);
  });

  it('pause and resume change one word of the spec', async () => {
    const handler: Handler = () => ({ json: testHost('h1', { spec: { pool: 'ci' } }) });
    const { stdout, requests } = await runBerth(['host', 'pause', 'h1'], { handler });
    expect(stdout).toBe('h1 paused\n');
    expect(requests.at(-1)?.body).toMatchObject({ spec: { paused: true, pool: 'ci' } });
  });

  it('create describes a host before its agent comes, and pool moves it', async () => {
    const handler: Handler = () => ({ json: testHost('h1', { spec: { pool: 'ci' } }) });
    const made = await runBerth(['host', 'create', 'h1', '--pool', 'ci', '--label', 'zone=a', '--paused'], { handler });
    expect(made.requests.at(-1)?.body).toEqual({
      metadata: { name: 'h1', labels: { zone: 'a' } },
      spec: { paused: true, pool: 'ci' },
    });
    const unclear = await runBerth(['host', 'pool', 'h1'], { handler });
    expect(unclear).toMatchObject({ exitCode: 2, requests: [] });
    const taken = await runBerth(['host', 'pool', 'h1', '--none'], { handler });
    expect(taken.stdout).toBe('h1 is in no pool\n');
    expect(taken.requests.at(-1)?.body).not.toHaveProperty('spec.pool');
  });

  it('show tells what the agent reported', async () => {
    const inventory = { total: 8, reserved: 0, minUnit: 1, maxUnit: 8, stepSize: 1, allocationRatio: 1 };
    const providers = [
      {
        id: 'host_1',
        generation: 1,
        traits: [],
        aggregates: [],
        inventories: { VCPU: { ...inventory, capacity: 8, used: 3 } },
      },
    ];
    const allocations = [
      { kind: 'instance', project: 'default', name: 'web', incarnation: 1, amounts: { host_1: { VCPU: 2 } } },
      { kind: 'task', project: 'ci', name: 'hold', incarnation: 1, amounts: { host_1: { VCPU: 1 } } },
    ];
    const handler: Handler = ({ path }) =>
      path === '/v1/hosts/h1'
        ? { json: testHost('h1') }
        : path === '/v1/hosts/h1/providers'
          ? { json: { providers, allocations } }
          : undefined;
    const { stdout } = await runBerth(['host', 'show', 'h1'], { handler });
    expect(stdout).toContain('ready         yes, for 60s: its agent has registered\n');
    expect(stdout).toContain('16 GiB memory (1 GiB memory kept for the host)\n');
    expect(stdout).toContain('driver        fake, not available, off\n');
    expect(stdout).toContain('held          3 CPUs of 8 CPUs\n');
    expect(stdout).toContain('instances     web  2 CPUs\n              ci/hold (task)  1 CPU\n');
  });
});
