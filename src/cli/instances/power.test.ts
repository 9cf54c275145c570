import { describe, expect, it } from 'vitest';
import { instances } from '../test-fleet.ts';
import { type Handler, page, refusal, runBerth, testInstance } from '../testing.ts';

describe('berth rm --wait', () => {
  it('ends when the instance is gone', async () => {
    const instance = testInstance('web', { status: { phase: 'Deleting' } });
    const handler: Handler = ({ method, query }) => {
      if (method === 'DELETE') return { json: instance };
      return query['watch']
        ? { lines: [{ type: 'delete', revision: 9, resource: { metadata: { name: 'web', project: 'default' } } }] }
        : page([instance]);
    };
    expect(await runBerth(['rm', 'web', '--wait'], { handler })).toMatchObject({
      stdout: 'web removed\n',
      exitCode: 0,
    });
  });
});

describe('berth stop', () => {
  it('changes only the power state, and tries again when someone was faster', async () => {
    const instance = testInstance('web', { metadata: { labels: { tier: 'web' } } });
    let puts = 0;
    const handler: Handler = ({ method }) => {
      if (method === 'GET') return { json: instance };
      puts++;
      return puts === 1 ? refusal(412, 'RevisionMismatch', 'changed') : { json: instance };
    };
    const { stdout, requests } = await runBerth(['stop', 'web', '--no-wait'], { handler });
    expect(stdout).toBe('web is being stopped\n');
    expect(requests.at(-1)?.body).toMatchObject({
      metadata: { labels: { tier: 'web' }, revision: instance.metadata.revision },
      spec: { image: 'tiny', powerState: 'stopped' },
    });
  });
});

describe('berth stop, by default,', () => {
  const running = testInstance('web');
  const stopped = (guest: Record<string, unknown> = {}) =>
    testInstance('web', {
      spec: { powerState: 'stopped' },
      status: { phase: 'Stopped', guest: { state: 'stopped', ready: false, ports: [], phases: [], ...guest } },
      metadata: running.metadata,
    });
  const ends =
    (after: unknown): Handler =>
    ({ query, path }) =>
      query['watch']
        ? { lines: [{ type: 'put', revision: 8, resource: after }] }
        : path === '/v1/instances'
          ? page([running])
          : { json: running };

  it('waits until the guest is off, for as long as it may take', async () => {
    const result = await runBerth(['stop', 'web', '--grace', '90s'], { handler: ends(stopped()) });
    expect(result).toMatchObject({ stdout: 'web stopped\n', exitCode: 0 });
    expect(result.stderr).not.toContain('warning');
    const put = result.requests.find(({ method }) => method === 'PUT');
    expect(put?.body).toMatchObject({ spec: { powerState: 'stopped', stopGraceMs: 90_000 } });
  });

  it('says when it was ended by force', async () => {
    const forced = stopped({ reason: 'StopForced', message: 'the guest did not power off within 30 s' });
    const result = await runBerth(['stop', 'web', '--wait'], { handler: ends(forced) });
    expect(result).toMatchObject({ stdout: 'web stopped\n', exitCode: 0 });
    expect(result.stderr).toContain('warning: web: the guest did not power off within 30 s\n');
  });

  it('refuses a grace that is too long', async () => {
    const { exitCode, stderr } = await runBerth(['stop', 'web', '--grace', '1h'], { handler: ends(stopped()) });
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--grace cannot be "1h"');
  });
});

describe('berth start', () => {
  const ended = (phase: string, restartPolicy: string): Handler => {
    const conditions = [
      { type: 'Running', status: 'False', reason: 'GuestEnded', message: 'as it wished', sinceMs: 0 },
    ];
    const instance = testInstance('web', { status: { phase, conditions }, spec: { restartPolicy } });
    return () => ({ json: instance });
  };

  it.each([
    ['is stopped', 'Stopped', 'Never', undefined],
    ['powered itself off', 'Exited', 'OnFailure', 1],
    ['failed for good', 'Failed', 'Never', 1],
    ['failed and will be restarted', 'Failed', 'OnFailure', 1],
  ])('starts one that %s', async (_, phase, restartPolicy, starts) => {
    const result = await runBerth(['start', 'web'], { handler: ended(phase, restartPolicy) });
    expect(result).toMatchObject({ exitCode: 0, stdout: 'web is being started\n' });
    const body: unknown = result.requests.at(-1)?.body;
    expect(body).toMatchObject({ spec: { powerState: 'running', ...(starts === undefined ? {} : { starts }) } });
    expect(JSON.stringify(body).includes('starts')).toBe(starts !== undefined);
  });
});

describe('berth suspend and resume', () => {
  const web = (powerState: string, phase: string) => testInstance('web', { spec: { powerState }, status: { phase } });

  it.each([
    ['suspend', 'running', 'Running', 'suspended', 'web is being suspended\n'],
    ['resume', 'suspended', 'Suspended', 'running', 'web is being resumed\n'],
  ])('ask for it: %s', async (verb, powerState, phase, wanted, said) => {
    const handler: Handler = () => ({ json: web(powerState, phase) });
    const { stdout, exitCode, requests } = await runBerth([verb, 'web'], { handler });
    expect({ stdout, exitCode }).toEqual({ stdout: said, exitCode: 0 });
    expect(requests.at(-1)?.body).toMatchObject({ spec: { powerState: wanted } });
  });

  it('wait until it is so', async () => {
    const before = web('suspended', 'Running');
    const after = testInstance('web', {
      spec: { powerState: 'suspended' },
      status: { phase: 'Suspended' },
      metadata: before.metadata,
    });
    const handler: Handler = ({ query, path }) =>
      query['watch']
        ? { lines: [{ type: 'put', revision: 8, resource: after }] }
        : path === '/v1/instances'
          ? page([before])
          : { json: before };
    const { stdout, exitCode } = await runBerth(['suspend', 'web', '--wait'], { handler });
    expect({ stdout, exitCode }).toEqual({ stdout: 'web is suspended\n', exitCode: 0 });
  });

  it('wait until the memory is on disk', async () => {
    const guest = { state: 'suspended', ready: true, ports: [], phases: [] };
    const spec = { powerState: 'suspended', suspendTo: 'disk' };
    const before = testInstance('web', { spec: { powerState: 'running' } });
    const suspended = testInstance('web', { spec, status: { phase: 'Suspended', guest }, metadata: before.metadata });
    const saved = testInstance('web', {
      spec,
      status: { phase: 'Suspended', guest: { ...guest, saved: true } },
      metadata: before.metadata,
    });
    const lines = [suspended, saved].map((resource, i) => ({ type: 'put', revision: 8 + i, resource }));
    const handler: Handler = ({ query, path }) =>
      query['watch'] ? { lines } : path === '/v1/instances' ? page([before]) : { json: before };
    const { stdout, requests } = await runBerth(['suspend', 'web', '--to-disk', '--wait'], { handler });
    expect(stdout).toBe('web is suspended\n');
    expect(requests.find(({ method }) => method === 'PUT')?.body).toMatchObject({ spec });
  });

  it('suspend in memory what was suspended to disk the last time', async () => {
    const last = testInstance('web', { spec: { powerState: 'running', suspendTo: 'disk' } });
    const { requests } = await runBerth(['suspend', 'web'], { handler: () => ({ json: last }) });
    expect(requests.at(-1)?.body).toMatchObject({ spec: { powerState: 'suspended', suspendTo: 'memory' } });
  });

  it.each([
    ['suspend', 'stopped', 'Stopped', 'it is Stopped, and only running instances can be suspended', 'berth start web'],
    [
      'suspend',
      'running',
      'Pending',
      'it is Pending, and only running instances can be suspended',
      'berth explain web',
    ],
    ['resume', 'stopped', 'Stopped', 'it is Stopped, and not suspended', 'berth start web'],
  ])('%s refuses one that is to be %s and is %s', async (verb, powerState, phase, why, advice) => {
    const { stderr, exitCode, requests } = await runBerth([verb, 'web'], {
      handler: () => ({ json: web(powerState, phase) }),
    });
    expect(stderr).toContain(`cannot ${verb} instance "web": ${why}`);
    expect(stderr).toContain(advice);
    expect({ exitCode, methods: requests.map(({ method }) => method) }).toEqual({ exitCode: 5, methods: ['GET'] });
  });
});

describe('berth restart', () => {
  const stopping = testInstance('web', { spec: { powerState: 'stopped' } });
  const stopped = testInstance('web', {
    spec: { powerState: 'stopped' },
    status: { phase: 'Stopped' },
    metadata: stopping.metadata,
  });
  const put = { type: 'put', revision: 8, resource: stopped };

  it('switches off, waits until it is off, and switches on', async () => {
    const handler: Handler = ({ method, query, path }) =>
      query['watch']
        ? { lines: [put] }
        : path === '/v1/instances'
          ? page([stopping])
          : { json: method === 'PUT' ? stopping : instances[0] };
    const { stdout, exitCode, requests } = await runBerth(['restart', 'web'], { handler });
    expect({ stdout, exitCode }).toEqual({ stdout: 'web is being started\n', exitCode: 0 });
    const steps = requests.map(({ method, query, body }) =>
      method === 'PUT' ? (body as { spec: { powerState: string } }).spec.powerState : query['watch'] ? 'watch' : method,
    );
    expect(steps).toEqual(['GET', 'stopped', 'GET', 'watch', 'GET', 'running']);
  });

  it('says that it stays off when it is ended between the two', async () => {
    const interruption = new AbortController();
    const handler: Handler = ({ query, path }) => {
      if (query['watch']) {
        interruption.abort();
        return { lines: [] };
      }
      return path === '/v1/instances' ? page([stopping]) : { json: stopping };
    };
    const { stderr, exitCode, requests } = await runBerth(['restart', 'web'], {
      handler,
      interruption: interruption.signal,
    });
    expect(exitCode).toBe(130);
    expect(stderr).toContain('it is being stopped, and stays off; then: berth start web\n');
    expect(requests.filter(({ method }) => method === 'PUT')).toHaveLength(1);
  });

  it('starts one that has ended again', async () => {
    const exited = testInstance('web', { status: { phase: 'Exited' } });
    const handler: Handler = ({ path }) => (path === '/v1/instances' ? page([exited]) : { json: exited });
    const { stdout, exitCode, requests } = await runBerth(['restart', 'web'], { handler });
    expect({ stdout, exitCode }).toEqual({ stdout: 'web is being started\n', exitCode: 0 });
    expect(requests.at(-1)?.body).toMatchObject({ spec: { powerState: 'running', starts: 1 } });
  });
});
