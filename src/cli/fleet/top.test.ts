import { describe, expect, it } from 'vitest';
import { type Handler, page, runBerth, testHost, testInstance } from '../testing.ts';

const usage = (host: string, used: number) => ({
  host,
  consumers: used,
  classes: {
    VCPU: { capacity: 8, used, most: 8 - used },
    MEMORY_MB: { capacity: 16_384, used: 1024 * used, most: 1024 },
  },
});
const assigned = (cpus: number) => ({ status: { assigned: { VCPU: cpus, MEMORY_MB: 1024 * cpus, DISK_GB: 10 } } });
const instances = [
  testInstance('small', assigned(1)),
  testInstance('large', { ...assigned(4), metadata: { project: 'ci' } }),
  testInstance('waits', { status: { phase: 'Pending', host: undefined } }),
];

const totals = [
  { project: 'default', instances: 2, running: 1, pending: 1, cpus: 1, memoryMiB: 1024, diskGiB: 10 },
  { project: 'ci', instances: 1, running: 1, pending: 0, cpus: 4, memoryMiB: 4096, diskGiB: 10 },
];

const fleet: Handler = ({ path, query }) => {
  if (path === '/v1/hosts') return page([testHost('h1'), testHost('h2', { spec: { pool: 'ci' } })]);
  if (path === '/v1/instances') return page(instances);
  if (path === '/v1/usage/instances') return { json: { items: [] } };
  if (path === '/v1/project-totals') return { json: { items: totals } };
  if (path !== '/v1/usage') return undefined;
  // The second host is on a second page.
  return {
    json: query['continue'] === 'more' ? { items: [usage('h2', 6)] } : { items: [usage('h1', 1)], continue: 'more' },
  };
};

describe('berth top', () => {
  it('shows the hosts whose scarcest class is claimed the most first, of all pages', async () => {
    const { stdout } = await runBerth(['top'], { handler: fleet });
    expect(stdout.split('\n')).toEqual([
      'HOST  STATE  POOL  FULL  CPUS        MEMORY  DISK  CONSUMERS',
      'h2    Ready  ci    75 %   6/8  6 GiB/16 GiB     -          6',
      'h1    Ready  -     13 %   1/8  1 GiB/16 GiB     -          1',
      '',
    ]);
  });

  it('shows the instances that claim the most first, and no more than asked for', async () => {
    const { stdout } = await runBerth(['top', 'instances', '--limit', '2'], { handler: fleet });
    expect(stdout.split('\n')).toEqual([
      'PROJECT  NAME   PHASE    HOST  CPUS  MEMORY    DISK',
      'ci       large  Running  h1       4   4 GiB  10 GiB',
      'default  small  Running  h1       1   1 GiB  10 GiB',
      'and 1 more',
      '',
    ]);
  });

  it('shows first the instances that use most of what they claim, where that is measured', async () => {
    const measured = {
      ...{ project: 'default', instance: 'small', host: 'h1', measuredAtMs: 1, cpus: 0.984 },
      ...{ cpuMs: 9, memoryBytes: 300 * 2 ** 20 },
    };
    const handler: Handler = (request) =>
      request.path === '/v1/usage/instances' ? { json: { items: [measured] } } : fleet(request);
    const { stdout } = await runBerth(['top', 'instances', '--limit', '2'], { handler });
    expect(stdout.split('\n').slice(0, 3)).toEqual([
      'PROJECT  NAME   PHASE    HOST  USES CPUS  USES MEMORY  CPUS  MEMORY    DISK',
      'default  small  Running  h1         0.98      300 MiB     1   1 GiB  10 GiB',
      'ci       large  Running  h1            -            -     4   4 GiB  10 GiB',
    ]);
  });

  it('shows the sums of projects, with numbers for programs', async () => {
    const { stdout } = await runBerth(['top', 'projects', '-o', 'json'], { handler: fleet });
    expect(JSON.parse(stdout)).toEqual([
      { project: 'ci', instances: 1, running: 1, pending: 0, cpus: 4, memoryMiB: 4096, diskGiB: 10 },
      { project: 'default', instances: 2, running: 1, pending: 1, cpus: 1, memoryMiB: 1024, diskGiB: 10 },
    ]);
  });

  it('draws again on a terminal, says when the server is away, and ends at Ctrl-C', async () => {
    const ends = new AbortController();
    let rounds = 0;
    const handler: Handler = (request) => {
      if (request.path === '/v1/project-totals' && ++rounds === 2)
        return { status: 503, json: { error: { code: 'Unavailable', message: 'it restarts' } } };
      if (rounds === 3) ends.abort();
      return fleet(request);
    };
    const clock = {
      nowMs: () => 0,
      monotonicMs: () => 0,
      setTimer: (_delayMs: number, fire: () => void) => {
        queueMicrotask(fire);
        return { cancel() {} };
      },
    };
    const settings = { handler, clock, interruption: ends.signal, terminal: { columns: 80, rows: 24 } };
    const { stdout, exitCode } = await runBerth(['top', 'projects'], settings);
    expect(stdout).toContain('no answer from the server (it restarts); trying again');
    expect(stdout.match(/PROJECT/g)).toHaveLength(3);
    expect(exitCode).toBe(130);
  });

  it.each([
    ['a subject', ['top', 'guests'], '<what> cannot be "guests"; choose one of: hosts, instances, projects'],
    ['an interval', ['top', '--interval', '0'], '--interval must be a whole number from 1 to 3600'],
  ])('refuses %s that does not exist', async (_name, words, message) => {
    const { stderr, exitCode } = await runBerth(words, { handler: fleet });
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
  });
});
