import { describe, expect, it } from 'vitest';
import type { QueueList } from '../../api/queue.ts';
import { type Handler, page, runBerth, testNowMs } from '../testing.ts';

const queue: QueueList = {
  waiting: 3,
  items: [
    {
      position: 1,
      project: 'ci',
      instance: 'a',
      priority: 5,
      waitingMs: 90_000,
      reason: 'Unschedulable',
      message: '0 of 1 host: 1 InsufficientCpu',
    },
    {
      position: 2,
      project: 'web',
      instance: 'b',
      priority: 0,
      waitingMs: 0,
      reason: 'GangIncomplete',
      message: 'one is missing',
      gang: 'g',
      expectedStartMs: testNowMs + 40_000,
    },
  ],
  projects: [
    { project: 'ci', weight: 2, share: 0.1 },
    { project: 'web', weight: 1, share: 0 },
  ],
};

describe('berth queue', () => {
  it('shows who is first, why each waits, and the shares', async () => {
    const handler: Handler = ({ path }) => (path === '/v1/queue' ? { json: queue } : undefined);
    const { stdout } = await runBerth(['queue'], { handler });
    expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
      '#  PROJECT  NAME  PRIORITY  GANG  WAITS  STARTS  WHY',
      '1  ci       a            5  -       90s       -  0 of 1 host: 1 InsufficientCpu',
      '2  web      b            0  g        0s  in 40s  one is missing',
      'and 1 more',
      '',
      'ci has 20 % of the fleet, which counts as 10 % by its weight 2',
      'web has 0 % of the fleet',
      '',
    ]);
  });
});

it.each([
  [['queue'], {}],
  [['--project', 'ci', 'queue'], { project: 'ci' }],
  [['queue', '--project', 'ci'], { project: 'ci' }],
])('berth %j asks for %j', async (words, asked) => {
  const { requests } = await runBerth(words, { handler: () => ({ json: queue }) });
  expect(requests[0]?.query).toEqual({ limit: '100', ...asked });
});

describe('berth project', () => {
  const made: Handler = ({ method }) => (method === 'POST' ? { status: 201, json: {} } : undefined);

  it('is made from flags', async () => {
    const words =
      'project create ci --weight 2 --quota VCPU=64 --quota INSTANCES=4 --guarantee VCPU=8 --priority-max 9';
    const { requests, stdout } = await runBerth(words.split(' '), { handler: made });
    expect(stdout).toBe('project ci created\n');
    expect(requests[0]?.body).toEqual({
      metadata: { name: 'ci' },
      spec: { description: '', weight: 2, quota: { VCPU: 64, INSTANCES: 4 }, guarantee: { VCPU: 8 }, priorityMax: 9 },
    });
  });

  it('is shown with what its quota counts', async () => {
    const project = {
      kind: 'project',
      metadata: { name: 'ci', createdAtMs: testNowMs },
      spec: { description: '', weight: 2, quota: { VCPU: 6 }, guarantee: { VCPU: 1 } },
    };
    const handler: Handler = ({ path }) =>
      path === '/v1/projects'
        ? page([project])
        : { json: path.endsWith('/usage') ? { project: 'ci', charged: { VCPU: 2, INSTANCES: 1 } } : project };
    expect((await runBerth(['project', 'ls'], { handler })).stdout).toContain('VCPU=2/6');
    const { stdout } = await runBerth(['project', 'show', 'ci'], { handler });
    expect(stdout).toContain('VCPU  2 of 6');
    expect(stdout).toContain('INSTANCES  1, no quota');
  });

  it('refuses what is no amount', async () => {
    const { stderr, exitCode } = await runBerth('project create ci --quota ram=3GiB'.split(' '), { handler: made });
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--quota cannot be "ram=3GiB"');
  });
});
