import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../testing.ts';

const guest = {
  ...{ kind: 'instance', id: 'inst_1', project: 'default', name: 'web-1', generation: 1, incarnation: 1 },
  ...{ action: 'replace', target: 'h1', reasons: [{ code: 'Workload', message: 'workload web creates another' }] },
  amounts: {},
};
const plan = {
  hash: 'abcdef0123456789',
  options: {},
  hosts: [{ host: 'h2', hostId: 'host_2', guests: [guest] }],
  needMigration: [{ host: 'h3', hostId: 'host_3', guests: [{ ...guest, name: 'db', action: 'stays' }] }],
  inUse: { before: 3, after: 2 },
  moves: 1,
};
const handler: Handler = ({ path, body }) => {
  if (path !== '/v1/rebalance') return undefined;
  const applied = typeof body === 'object' && body !== null && 'apply' in body;
  return { json: applied ? { drains: [{ host: 'h2' }] } : { plan } };
};

describe('berth rebalance', () => {
  it('shows the moves, and how to make them', async () => {
    const { stdout, requests } = await runBerth(['rebalance', '--threshold', '30', '--pool', 'web'], { handler });
    expect(requests[0]?.body).toMatchObject({ pool: 'web', thresholdPercent: 30, budget: 20, coolDownMs: 3_600_000 });
    expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
      '1 moves empty 1 of 3 hosts in use: h2.',
      '',
      'NAME   FROM  ACTION    TO  WHY',
      'web-1  h2    replaced  h1  workload web creates another',
      '',
      'These could leave their hosts only by a move that --moves does not permit; the plan does not touch them:',
      'NAME  FROM',
      'db    h3',
      '',
      'Plan abcdef0123456789. Each host is closed while it is emptied, and then opened. Apply it with:',
      '  berth rebalance --pool web --threshold 30 --apply abcdef0123456789',
      '',
    ]);
  });

  it('applies a plan by its hash', async () => {
    const { stdout, requests } = await runBerth(['rebalance', '--apply', plan.hash], { handler });
    expect(requests[0]?.body).toMatchObject({ apply: plan.hash });
    expect(stdout).toBe('h2 is being emptied: berth host drain h2 --watch\n');
  });
});
