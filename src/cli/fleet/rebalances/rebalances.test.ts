import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../../testing.ts';

const schedule = {
  ...{ cron: '0 3 * * *', timeZone: 'UTC', mode: 'suggest', paused: false, budget: 20, thresholdPercent: 40 },
  ...{ movesMax: 4, coolDownMs: 0, moves: 'live', emptiedMin: 1 },
};
const poolWith = (rebalance: object | undefined, status: object = {}) => ({
  kind: 'pool',
  metadata: { name: 'web', id: 'pool_1', project: '', revision: 7, generation: 1, labels: {}, createdAtMs: 0 },
  spec: { description: '', ...(rebalance === undefined ? {} : { rebalance }) },
  status,
});
const plan = { hash: 'abcdef0123456789', options: {}, hosts: [], needMigration: [], inUse: { before: 3, after: 3 } };

const handlerWith =
  (rebalance: object | undefined, status?: object): Handler =>
  ({ path, body, method }) => {
    if (path === '/v1/rebalance') return { json: 'apply' in Object(body) ? { drains: [{ host: 'h2' }] } : { plan } };
    if (path !== '/v1/pools/web') return undefined;
    return { json: method === 'GET' ? poolWith(rebalance, status) : body };
  };

describe('berth rebalance schedule', () => {
  it.each([
    [undefined, '--cron "0 3 * * *"', { cron: '0 3 * * *' }, 'has the schedule 0 3 * * *: suggest'],
    [
      schedule,
      '--mode apply --moves cold --cool-down 2h',
      { ...schedule, mode: 'apply', moves: 'cold', coolDownMs: 7_200_000 },
      'has the schedule 0 3 * * *: apply',
    ],
    [schedule, '--pause', { ...schedule, paused: true }, 'pauses its schedule 0 3 * * *'],
    [{ ...schedule, paused: true }, '--resume', schedule, 'has the schedule 0 3 * * *: suggest'],
    [schedule, '--off', undefined, 'has no schedule any more'],
  ])('%#: %s', async (before, line, wanted, text) => {
    const options = line.match(/"[^"]*"|\S+/g)?.map((word) => word.replaceAll('"', '')) ?? [];
    const args = ['rebalance', 'schedule', 'web', ...options];
    const { stdout, requests } = await runBerth(args, { handler: handlerWith(before) });
    expect(requests.at(-1)?.body).toMatchObject({
      spec: wanted === undefined ? { description: '' } : { rebalance: wanted },
    });
    expect(stdout).toBe(`web ${text}\n`);
  });

  it.each([
    ['', 'no change of the schedule is given'],
    ['--mode apply', 'name the times'],
    ['--off --pause', '--off excludes the other options'],
  ])('refuses "%s"', async (line, message) => {
    const args = ['rebalance', 'schedule', 'web', ...line.split(' ').filter((word) => word !== '')];
    const { stderr } = await runBerth(args, { handler: handlerWith(undefined) });
    expect(stderr).toContain(message);
  });
});

describe('berth rebalance show', () => {
  it('plans with the options of the schedule', async () => {
    const last = { atMs: 0, outcome: 'Nothing', message: 'no host can be emptied', hosts: [], moves: 0 };
    const handler = handlerWith(schedule, { rebalance: { handled: 1, last } });
    const { stdout, requests } = await runBerth(['rebalance', 'show', 'web'], { handler });
    const { cron: _cron, timeZone: _zone, mode: _mode, paused: _paused, ...options } = schedule;
    expect(requests.at(-1)?.body).toEqual({ pool: 'web', ...options });
    expect(stdout).toMatch(/^pool web: suggest at 0 3 \* \* \* \(UTC\), no time ahead\nlast: .* ago: Nothing: no host/);
  });

  it('applies the plan by its hash', async () => {
    const args = ['rebalance', 'show', 'web', '--apply', plan.hash];
    const { stdout, requests } = await runBerth(args, { handler: handlerWith(schedule) });
    expect(requests.at(-1)?.body).toMatchObject({ apply: plan.hash, pool: 'web' });
    expect(stdout).toBe('h2 is being emptied: berth host drain h2 --watch\n');
  });

  it('answers in JSON', async () => {
    const { stdout } = await runBerth(['rebalance', 'show', 'web', '-o', 'json'], { handler: handlerWith(schedule) });
    expect(JSON.parse(stdout)).toMatchObject({ schedule: { cron: '0 3 * * *' }, plan: { hash: plan.hash } });
  });

  it('says how to set a schedule', async () => {
    const { stderr } = await runBerth(['rebalance', 'show', 'web'], { handler: handlerWith(undefined) });
    expect(stderr).toContain('pool "web" has no schedule');
  });
});
