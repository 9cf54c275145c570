import { describe, expect, it } from 'vitest';
import type { Explanation } from '../../api/explanation.ts';
import { type Handler, runBerth, testInstance, testNowMs } from '../testing.ts';

const explanation: Explanation = {
  instance: 'web',
  project: 'default',
  phase: 'Pending',
  summary: 'fits on h1',
  profile: 'optimize-utilization',
  amounts: { VCPU: 2 },
  counts: { hosts: 1, fit: 1, refused: 0 },
  reasons: [],
  hosts: [{ host: 'h1', current: false, fits: true, refusals: [], score: 50, scores: { utilization: 50 } }],
};

function planning(answer: Partial<Explanation> = {}): Handler {
  return ({ method, path, query }) =>
    method === 'POST' && path === '/v1/instances' && query['dryRun'] === 'true'
      ? { json: { ...testInstance('web'), explanation: { ...explanation, ...answer } } }
      : undefined;
}

describe('berth plan run', () => {
  it('asks with the flags of run, and says where it would go', async () => {
    const { stdout, requests, exitCode } = await runBerth(['plan', 'run', 'tiny', '-c', '2', '--pool', 'ci'], {
      handler: planning(),
    });
    expect(requests[0]?.body).toMatchObject({ spec: { image: 'tiny', cpus: 2, placement: { pool: 'ci' } } });
    expect(stdout.split('\n').slice(0, 2)).toEqual(['web would be placed: it fits on h1', '  asks for  2 CPUs']);
    expect(exitCode).toBe(0);
  });

  it('says who would be stopped for it, which is no wait', async () => {
    const handler = planning({
      summary:
        'fits on h1 once default/ci-7 (of lower priority) is stopped for it; now: 0 of 1 host: 1 InsufficientCpu',
      preemption: { host: 'h1', instances: ['default/ci-7'] },
      nearest: [{ change: 'AskLess', message: 'request 1 CPU (1 CPU less)', hosts: ['h1'], hostCount: 1, cost: 6 }],
    });
    const { stdout, exitCode } = await runBerth(['plan', 'run', 'tiny', '--preempt'], { handler });
    expect(stdout).toContain('web would be placed: it fits on h1 once default/ci-7 (of lower priority) is stopped');
    expect(stdout).not.toContain('nearest');
    expect(exitCode).toBe(0);
  });

  it('says why it would wait, with an exit code of its own', async () => {
    const handler = planning({
      summary: '0 of 1 host: 1 InsufficientCpu',
      nearest: [{ change: 'AskLess', message: 'request 1 CPU (1 CPU less)', hosts: ['h1'], hostCount: 1, cost: 6 }],
    });
    const { stdout, exitCode } = await runBerth(['plan', 'run', 'tiny'], { handler });
    expect(stdout).toContain('web would wait: 0 of 1 host: 1 InsufficientCpu');
    expect(stdout).toContain('  request 1 CPU (1 CPU less)  (h1)');
    expect(exitCode).toBe(7);
  });
});

describe('berth candidates', () => {
  const found = {
    profile: 'optimize-utilization',
    amounts: { VCPU: 2 },
    counts: { hosts: 2, fit: 1 },
    candidates: [{ host: 'h1', score: 50, scores: { utilization: 50 }, held: {} }],
    reasons: [
      { reason: 'HostPaused', rule: 'paused', hosts: 1, alone: 1, examples: [{ host: 'h2', message: 'paused' }] },
    ],
  };
  const handler: Handler = ({ path }) => (path === '/v1/candidates' ? { json: found } : undefined);

  it('shows who would take it and why others would not', async () => {
    const { stdout, requests } = await runBerth(['candidates', '-c', '2', '--host-label', 'a=b'], { handler });
    expect(requests[0]?.body).toMatchObject({
      spec: { cpus: 2, placement: { hostLabels: { a: 'b' } } },
      limit: 20,
    });
    expect(stdout.split('\n')).toEqual([
      '1 of 2 hosts fit.',
      '  asks for  2 CPUs',
      '  profile   optimize-utilization',
      '',
      '  1 HostPaused, as h2: paused',
      '',
      'HOST  SCORE  BY RULE',
      'h1       50  utilization 50',
      '',
    ]);
  });
});

it.each([['plan', 'run', 'tiny'], ['candidates'], ['capacity'], ['queue']])(
  'berth %s has no names to print',
  async (...words) => {
    const { stderr, exitCode, requests } = await runBerth([...words, '-o', 'name']);
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
    expect(stderr).toContain('-o cannot be "name"');
  },
);

describe('berth reserve', () => {
  it('holds for a second at least', async () => {
    const { stderr, exitCode, requests } = await runBerth(['reserve', '--for', '0s', '-c', '1']);
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
    expect(stderr).toContain('--for cannot be "0s"');
  });

  it('holds room for so long', async () => {
    const task = {
      kind: 'task',
      metadata: { ...testInstance('x').metadata, name: 'hold-1', id: 'task_1' },
      spec: { ttlMs: 600_000, placement: {}, ports: [] },
      status: { phase: 'Placed', host: 'h1', heldUntilMs: testNowMs + 600_000, conditions: [] },
    };
    const handler: Handler = ({ method, path }) =>
      path === '/v1/tasks'
        ? method === 'POST'
          ? { status: 201, json: { ...task, status: { phase: 'Pending', conditions: [] } } }
          : { json: { items: [task], revision: 3 } }
        : undefined;
    const words = ['reserve', '--for', '10m', '-c', '2', '-m', '4GiB', '-n', 'hold-1'];
    const { stdout, requests } = await runBerth([...words, '--wait'], { handler });
    expect(requests[0]?.body).toMatchObject({
      metadata: { name: 'hold-1' },
      spec: { cpus: 2, memoryMiB: 4096, ttlMs: 600_000 },
    });
    expect(stdout).toBe('hold-1 has resources reserved on h1 for 10m; berth run IMAGE --task hold-1\n');
    const listed = await runBerth(['task', 'ls'], { handler });
    expect(listed.stdout).toMatch(/NAME +PHASE +HOST +CPUS +MEMORY +LEFT/);
    expect(listed.stdout).toMatch(/hold-1 +Placed +h1 .* 10m/);
  });
});
