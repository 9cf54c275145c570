import { expect, it } from 'vitest';
import { runBerth } from '../testing.ts';

it.each([
  [1, 'consistent: 1 instance, 1 allocation, 1 provider, 1 host\n'],
  [2, 'consistent: 2 instances, 2 allocations, 2 providers, 2 hosts\n'],
])('berth verify counts %i of each', async (count, said) => {
  const checked = { instances: count, allocations: count, providers: count, hosts: count, hostsHeard: count };
  const report = { findings: [], young: 0, checked, repaired: [], watchedMs: 3_600_000 };
  expect((await runBerth(['verify'], { handler: () => ({ json: report }) })).stdout).toBe(said);
});

it('runs berth verify for a bare berth audit, with a notice', async () => {
  const checked = { instances: 1, allocations: 1, providers: 1, hosts: 1, hostsHeard: 1 };
  const report = { findings: [], young: 0, checked, repaired: [], watchedMs: 3_600_000 };
  const { stdout, stderr, exitCode } = await runBerth(['audit', '--older-than', '0s'], {
    handler: ({ path }) => (path === '/v1/verify' ? { json: report } : undefined),
  });
  expect({ stdout, exitCode }).toEqual({ stdout: expect.stringContaining('consistent: 1 instance'), exitCode: 0 });
  expect(stderr).toContain('"berth audit" is now "berth verify"');
});
