import { describe, expect, it } from 'vitest';
import type { Explanation } from '../../api/explanation.ts';
import { type Handler, runBerth, testNowMs } from '../testing.ts';

const explanation: Explanation = {
  instance: 'big',
  project: 'default',
  phase: 'Pending',
  summary: '0 of 2 hosts: 2 InsufficientMemory',
  profile: 'optimize-utilization',
  amounts: { VCPU: 2, MEMORY_MB: 65_536 },
  counts: { hosts: 2, fit: 1, refused: 1 },
  reasons: [
    {
      reason: 'InsufficientMemory',
      rule: 'fit',
      hosts: 2,
      alone: 1,
      examples: [{ host: 'h1', message: 'needs 64 GiB, 14 GiB are free' }],
    },
  ],
  hosts: [
    {
      host: 'h1',
      current: false,
      fits: false,
      refusals: [
        { rule: 'fit', reason: 'InsufficientMemory', message: 'needs 64 GiB, 14 GiB are free' },
        { rule: 'paused', reason: 'Paused', message: 'takes no new instances' },
      ],
    },
    { host: 'h2', current: true, fits: true, refusals: [], score: 61.25, scores: { fit: 60, spread: 1.25 } },
  ],
};

function answering(...pages: readonly Partial<Explanation>[]): Handler {
  return ({ path, query }) =>
    path === '/v1/instances/big/explain'
      ? { json: { ...explanation, ...pages[Number(query['continue'] ?? 0)] } }
      : undefined;
}

async function told(page: Partial<Explanation>): Promise<string[]> {
  const { stdout } = await runBerth(['explain', 'big'], { handler: answering(page) });
  return stdout.trimEnd().split('\n');
}

describe('berth explain', () => {
  it('shows every refusal of every host', async () => {
    expect(await told({})).toEqual([
      'big is Pending: 0 of 2 hosts: 2 InsufficientMemory',
      '  asks for  2 CPUs, 64 GiB memory',
      '  profile   optimize-utilization',
      '',
      '  h1  InsufficientMemory  needs 64 GiB, 14 GiB are free',
      '      Paused  takes no new instances',
      '* h2  fits  score 61.3 (fit 60 + spread 1.3)',
    ]);
  });

  it('says what would make it fit, and where', async () => {
    const nearest: Explanation['nearest'] = [
      { change: 'ResumeHost', message: 'resume host h1', hosts: ['h1'], hostCount: 1, cost: 2 },
      { change: 'AskLess', message: 'request 62 GiB memory (2 GiB memory less)', hosts: ['h2'], hostCount: 1, cost: 3 },
    ];
    expect((await told({ nearest })).slice(3, 7)).toEqual([
      '',
      'It would fit, nearest first:',
      '  resume host h1',
      '  request 62 GiB memory (2 GiB memory less)  (h2)',
    ]);
  });

  it('says so when nothing helps', async () => {
    expect(await told({ nearest: [] })).toContain('No single change of the fleet or of the request would make it fit.');
  });

  it('tells the place in the queue', async () => {
    const queue = { position: 5, waiting: 9, ahead: ['default/a', 'ci/b'], projectShare: 0.125 };
    expect((await told({ queue })).slice(3, 5)).toEqual([
      '  queue     5 of 9, after default/a, ci/b, …',
      '  project   uses 12.5 % of the fleet',
    ]);
  });

  it('tells of a placed one why it is there', async () => {
    const placed: Explanation['placed'] = {
      decidedAtMs: testNowMs - 60_000,
      decision: 'placed on h2: best of 1 that fit, of 2 (score 50)',
      fitsNow: true,
      scoreThen: 50,
      scoreNow: 61.25,
      better: [{ host: 'h3', score: 70 }],
      runnersUp: [{ host: 'h3', score: 70 }],
      changes: ['h3 joined'],
    };
    expect((await told({ phase: 'Running', host: 'h2', placed })).slice(3, 7)).toEqual([
      '  decided   60s ago',
      '  score     61.3 now, 50 at placement',
      '  better    h3 (70)',
      '  changed   h3 joined',
    ]);
  });

  it('shows reasons in short where not all hosts are shown, and all of them with --all', async () => {
    const [first, second] = explanation.hosts;
    const pages = [{ hosts: first ? [first] : [], continue: '1' }, { hosts: second ? [second] : [] }];
    const short = (await runBerth(['explain', 'big'], { handler: answering(...pages) })).stdout;
    expect(short).toContain('  2 InsufficientMemory (1 for this alone), as h1: needs 64 GiB, 14 GiB are free');
    expect(short).toContain('and 1 more; --all shows every host');
    const all = (await runBerth(['explain', 'big', '--all'], { handler: answering(...pages) })).stdout;
    expect(all).toContain('* h2  fits');
    expect(all).not.toContain('more; --all');
  });

  it('says where to look of what is no instance', async () => {
    const handler: Handler = () => ({
      status: 404,
      json: { error: { code: 'NotFound', message: 'there is no instance "hold"' } },
    });
    expect((await runBerth(['explain', 'hold'], { handler })).stderr).toBe(
      'berth: cannot explain instance "hold": there is no instance "hold"\n' +
        '  "berth ps" shows the instances, "berth ps -A" those of all projects; why a task waits: berth task ls\n',
    );
  });

  it('gives the whole of it as JSON', async () => {
    const { stdout } = await runBerth(['explain', 'big', '-o', 'json'], { handler: answering({}) });
    expect(JSON.parse(stdout)).toEqual(explanation);
  });
});
