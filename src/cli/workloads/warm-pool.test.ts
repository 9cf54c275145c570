import { describe, expect, it } from 'vitest';
import { runBerth } from '../testing.ts';

describe('berth warm-pool create', () => {
  it('sends a budget by resource class', async () => {
    const words = ['warm-pool', 'create', 'ci', 'tiny', '--budget', 'cpus=8', '--budget', 'memory=16GiB'];
    const { requests } = await runBerth([...words, '--budget', 'DISK_GB=100'], { handler: () => ({ json: {} }) });
    expect(requests[0]?.body).toMatchObject({ spec: { budget: { VCPU: 8, MEMORY_MB: 16_384, DISK_GB: 100 } } });
  });

  it.each([
    ['no amount', 'cpus=', '--budget cpus= lacks an amount'],
    ['no class', '8', '--budget cannot be "8"'],
    ['an amount that is no number', 'cpus=many', '--budget cpus must be a whole number'],
  ])('refuses a budget with %s', async (_, budget, message) => {
    const words = ['warm-pool', 'create', 'ci', 'tiny', '--budget', budget];
    const { stderr, exitCode, requests } = await runBerth(words, { handler: () => ({ json: {} }) });
    expect(stderr).toContain(message);
    expect([exitCode, requests.length]).toEqual([2, 0]);
  });
});
