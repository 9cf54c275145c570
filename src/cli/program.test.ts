import { describe, expect, it, vi } from 'vitest';
import { imageKey, type ImageSpec } from '../api/resources/image.ts';
import { type Handler, page, refusal, runBerth, testHost, testInstance, testNowMs } from './testing.ts';

const ready = {
  guest: {
    state: 'running',
    ready: true,
    address: '192.0.2.7',
    ports: [{ hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' }],
    accelerator: 'tcg',
    phases: [
      { name: 'clone', startedAtMs: 0, durationMs: 120 },
      { name: 'boot', startedAtMs: 0, durationMs: 2_900 },
    ],
  },
  scheduledAtMs: testNowMs - 89_960,
  readyAtMs: testNowMs - 86_500,
};
const pending = {
  phase: 'Pending',
  host: undefined,
  conditions: [
    {
      type: 'Scheduled',
      status: 'False',
      reason: 'NoHostFits',
      message: '0 of 2 hosts: 2 InsufficientMemory',
      sinceMs: 0,
    },
  ],
};
const instances = [testInstance('web', { status: ready }), testInstance('big', { status: pending })];
const lists: Handler = ({ path, method }) => {
  if (method === 'GET' && path === '/v1/instances') return page(instances);
  if (method === 'GET' && path === '/v1/hosts')
    return page([testHost('h1'), testHost('h2', { spec: { paused: true, pool: 'ci' } })]);
  return undefined;
};

describe('berth ps', () => {
  it('prints a table of the project, sorted by name', async () => {
    const { stdout, exitCode, requests } = await runBerth(['ps'], { handler: lists });
    expect(stdout).toBe(
      [
        'NAME  PHASE    READY  HOST  ADDRESS    PORTS               IMAGE  RESTARTS  AGE  REASON',
        'big   Pending  no     -     -          -                   tiny          0  90s  0 of 2 hosts: 2 InsufficientMemory',
        'web   Running  yes    h1    192.0.2.7  127.0.0.1:8080->80  tiny          0  90s  -',
        '',
      ].join('\n'),
    );
    expect(exitCode).toBe(0);
    expect(requests[0]).toMatchObject({ query: { project: 'default' }, headers: { authorization: 'Bearer secret' } });
  });

  it("shows no address that leads nowhere: that of QEMU's user network, behind which only published ports are reached", async () => {
    const inside = testInstance('web', { status: { ...ready, guest: { ...ready.guest, address: '10.0.2.15' } } });
    const { stdout } = await runBerth(['ps'], { handler: () => page([inside]) });
    expect(stdout).not.toContain('10.0.2.15');
    expect(stdout).toContain('127.0.0.1:8080->80');
  });

  it('says what is wrong with an instance that runs', async () => {
    const conditions = [
      { type: 'Running', status: 'True', reason: 'DiskFull', message: 'no room is left', sinceMs: 0 },
    ];
    const full = testInstance('web', {
      status: { ...ready, guest: { ...ready.guest, reason: 'DiskFull', message: 'no room is left' }, conditions },
    });
    const { stdout } = await runBerth(['ps'], { handler: () => page([full]) });
    expect(stdout).toMatch(/^web +Running +yes .* DiskFull: no room is left$/m);
  });

  it('asks for all projects, or for labels', async () => {
    const { requests } = await runBerth(['ps', '-A', '-l', 'tier=web'], { handler: lists });
    expect(requests[0]?.query).toEqual({ selector: 'tier=web' });
  });

  it('takes global flags before and after the verb', async () => {
    const before = await runBerth(['--project', 'ci', 'ps'], { handler: lists });
    const after = await runBerth(['ps', '--project', 'ci'], { handler: lists });
    expect([before, after].map(({ requests }) => requests[0]?.query['project'])).toEqual(['ci', 'ci']);
  });

  it('prints JSON, YAML and names for programs', async () => {
    const [json, yaml, name] = await Promise.all(
      ['json', 'yaml', 'name'].map((format) => runBerth(['ps', '-o', format], { handler: lists })),
    );
    expect(JSON.parse(json?.stdout ?? '')).toHaveLength(2);
    expect(yaml?.stdout).toContain('name: web\n');
    expect(name?.stdout).toBe('big\nweb\n');
  });

  it('says on standard error that there is nothing', async () => {
    const { stdout, stderr } = await runBerth(['ps'], { handler: () => page([]) });
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: 'no instances; create one: berth run IMAGE\n' });
  });

  it('cuts lines at the edge of a terminal', async () => {
    const { stdout } = await runBerth(['ps'], { handler: lists, terminal: { columns: 60, rows: 24 } });
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(60);
  });

  it('spells out what could steer a terminal', async () => {
    const evil = testInstance('web', {
      status: { ...pending, conditions: [{ ...pending.conditions[0], message: '\u001b]0;owned\u0007\u202egnp' }] },
    });
    const { stdout } = await runBerth(['ps'], { handler: () => page([evil]) });
    expect(stdout).toContain('\\x1b]0;owned\\x07\\u202egnp');
  });

  it('reads every page', async () => {
    const handler: Handler = ({ query }) =>
      query['continue'] ? page([instances[1]]) : { json: { items: [instances[0]], revision: 1, continue: 'more' } };
    expect((await runBerth(['ps', '-o', 'name'], { handler })).stdout).toBe('big\nweb\n');
  });
});

describe('berth ps --watch', () => {
  const stopping = (): { interruption: AbortController; settings: { interruption: AbortSignal } } => {
    const interruption = new AbortController();
    return { interruption, settings: { interruption: interruption.signal } };
  };
  const booting = testInstance('new', {
    status: { phase: 'Starting', guest: { ready: false, ports: [], phases: [], progress: 'pulling tiny: 41 %' } },
  });

  it('prints a line for each change when piped, and ends with 130 at Ctrl-C', async () => {
    const { interruption, settings } = stopping();
    const handler: Handler = ({ query }) =>
      query['watch']
        ? {
            lines: [
              { type: 'put', revision: 8, resource: booting },
              { type: 'bookmark', revision: 9 },
              { type: 'delete', revision: 9, resource: { metadata: { name: 'new', project: 'default' } } },
            ],
          }
        : page(instances);
    const { stdout, stderr, exitCode } = await runBerth(['ps', '--watch'], {
      handler,
      ...settings,
      onOutput: (text) => text.includes('is gone') && interruption.abort(),
    });
    expect(stdout.split('\n').slice(3)).toEqual([
      'new   Starting  no     h1    -          -                   tiny          0  90s  pulling tiny: 41 %',
      'new is gone',
      '',
    ]);
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 130 });
  });

  it('redraws the table in place on a terminal', async () => {
    const { interruption, settings } = stopping();
    const handler: Handler = ({ query }) =>
      query['watch'] ? { lines: [{ type: 'put', revision: 8, resource: booting }] } : page(instances);
    const { stdout } = await runBerth(['ps', '-w'], {
      handler,
      ...settings,
      terminal: { columns: 200, rows: 24 },
      onOutput: (text) => text.includes('pulling') && interruption.abort(),
    });
    expect(stdout).toContain('\u001b[3A\r\u001b[0J');
  });

  it('lists again when the history it stood on is gone', async () => {
    const { interruption, settings } = stopping();
    let lists = 0;
    const handler: Handler = ({ query }) => {
      if (query['watch'] && lists === 1) return { lines: [{ error: { code: 'Compacted', message: 'gone' } }] };
      if (query['watch']) return { lines: [{ type: 'put', revision: 8, resource: booting }] };
      lists++;
      return page(instances);
    };
    const { stdout } = await runBerth(['ps', '-w', '-o', 'name'], {
      handler,
      ...settings,
      onOutput: (text) => text.includes('new') && interruption.abort(),
    });
    expect({ lists, stdout }).toEqual({ lists: 2, stdout: 'big\nweb\nnew\n' });
  });
});

describe('berth run', () => {
  const accepted = testInstance('web', { status: { phase: 'Pending', conditions: [] } });
  const create: Handler = ({ method }) => (method === 'POST' ? { status: 201, json: accepted } : undefined);

  it('sends what the flags say and prints the name', async () => {
    const words =
      'run tiny --name web -s small -c 2 -m 1GiB -d 10GiB --pool ci --host-label zone=a --driver qemu -p 8080:80 -p 53/udp -l tier=web --restart on-failure --exclusive --profile distribute-load --idempotency-key k1 --user-data -';
    const { stdout, requests, exitCode } = await runBerth(words.split(' '), {
      handler: create,
      stdin: '#!/bin/sh\necho hi\n',
    });
    expect({ stdout, exitCode }).toEqual({ stdout: 'web\n', exitCode: 0 });
    expect(requests[0]?.headers['idempotency-key']).toBe('k1');
    expect(requests[0]?.body).toEqual({
      metadata: { name: 'web', project: 'default', labels: { tier: 'web' } },
      spec: {
        image: 'tiny',
        size: 'small',
        cpus: 2,
        memoryMiB: 1024,
        diskGiB: 10,
        placement: { profile: 'distribute-load', pool: 'ci', driver: 'qemu', hostLabels: { zone: 'a' } },
        ports: [
          { hostPort: 8080, guestPort: 80, protocol: 'tcp' },
          { hostPort: 0, guestPort: 53, protocol: 'udp' },
        ],
        sshKeys: [],
        userData: '#!/bin/sh\necho hi\n',
        restartPolicy: 'OnFailure',
        exclusive: true,
      },
    });
  });

  const watched =
    (...statuses: object[]): Handler =>
    ({ method, query }) => {
      if (method === 'POST') return { status: 201, json: accepted };
      if (!query['watch']) return page([accepted]);
      return {
        lines: statuses.map((status, i) => ({
          type: 'put',
          revision: 8 + i,
          resource: { ...accepted, status: { ...testInstance('x').metadata, ...status } },
        })),
      };
    };

  it('--wait tells the phases and then what the guest has', async () => {
    const base = { restartCount: 0, conditions: [], host: 'h1' };
    const handler = watched(
      { ...base, phase: 'Starting', guest: { ready: false, ports: [], phases: [], progress: 'pulling tiny: 41 %' } },
      { ...base, phase: 'Running', ...ready },
    );
    const { stdout, stderr, exitCode } = await runBerth(['run', 'tiny', '--wait'], { handler });
    expect(stderr).toBe('web: Pending\nweb: Starting  pulling tiny: 41 %\n');
    expect(stdout).toBe(
      [
        'web is ready after 3.5 s on h1 (tcg)',
        '  address  192.0.2.7',
        '  port     127.0.0.1:8080 on h1 -> 80/tcp',
        '  phases   place 0.0 s, clone 0.1 s, boot 2.9 s',
        '',
      ].join('\n'),
    );
    expect(exitCode).toBe(0);
  });

  it('tells the port that the host chose: --wait when it is ready, else where to look', async () => {
    const spec = { ports: [{ hostPort: 0, guestPort: 80, protocol: 'tcp' }] };
    const asked = testInstance('web', { spec, status: { phase: 'Pending', conditions: [] } });
    const guest = { ...ready.guest, ports: [{ ...spec.ports[0], hostAddress: '127.0.0.1', hostPort: 20_017 }] };
    const status = { restartCount: 0, conditions: [], host: 'h1', phase: 'Running', ...ready, guest };
    const waited = await runBerth(['run', 'tiny', '-p', '80', '--wait'], { handler: watched(status) });
    expect(waited.stdout).toContain('  port     127.0.0.1:20017 on h1 -> 80/tcp\n');
    const { stdout, stderr } = await runBerth(['run', 'tiny', '-p', '80'], {
      handler: () => ({ status: 201, json: asked }),
      errorsOnTerminal: true,
    });
    expect(stdout).toBe('web\n');
    expect(stderr).toContain('its ports, once it runs: berth ip --ports web\n');
    const listed = await runBerth(['ps'], { handler: () => page([{ ...asked, status }]) });
    expect(listed.stdout).toContain('127.0.0.1:20017->80');
    const shown = await runBerth(['show', 'web'], { handler: () => ({ json: { ...asked, status } }) });
    expect(shown.stdout).toMatch(/port +127\.0\.0\.1:20017 on h1 -> 80\/tcp/);
  });

  it.each([
    ['Failed', 'berth: instance "web" failed: HypervisorFailed: no such machine\n  berth logs web, berth events web\n'],
    [
      'Exited',
      'berth: instance "web" exited before it was ready: HypervisorFailed: no such machine\n  berth logs web\n',
    ],
  ])('--wait ends with 7 when the guest is %s', async (phase, message) => {
    const conditions = [
      { type: 'Running', status: 'False', reason: 'HypervisorFailed', message: 'no such machine', sinceMs: 0 },
    ];
    const { stderr, exitCode, stdout } = await runBerth(['run', 'tiny', '--wait'], {
      handler: watched({ phase, restartCount: 0, conditions }),
    });
    expect(stderr).toContain(message);
    expect({ exitCode, stdout }).toEqual({ exitCode: 7, stdout: '' });
  });

  it.each([
    ['--memory 512', '--memory cannot be "512"'],
    ['--disk 1.5GiB', '--disk cannot be "1.5GiB"'],
    ['--cpus 0', '--cpus must be a whole number'],
    ['-p 80:', '--publish cannot be "80:"'],
    ['-p 80:99999', '--publish cannot be "80:99999"'],
    ['-l tier', '--label cannot be "tier"'],
    ['--profile fast', '--profile cannot be "fast"'],
    ['--timeout 5m', '--timeout needs --wait'],
    ['-o xml', '-o cannot be "xml"'],
    ['--user-data /nonexistent/x', 'cannot read user-data from /nonexistent/x: there is no such file'],
    ['--user-data /', 'cannot read user-data from /: it is not a file'],
    ['--user-data /dev/zero', 'cannot read user-data from /dev/zero: it is not a file'],
    ['--token abc', "unknown option '--token'"],
  ])('refuses %s before it asks the server', async (flags, message) => {
    const { stderr, exitCode, requests } = await runBerth(['run', 'tiny', ...flags.split(' ')], { handler: create });
    expect(stderr).toContain(message);
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
  });
});

describe('a failure says what was attempted and ends with its code', () => {
  it.each([
    [
      'NotFound',
      404,
      3,
      'berth: cannot remove instance "x": there is no instance "x"\n  "berth ps" shows the instances\n',
    ],
    [
      'Unauthenticated',
      401,
      4,
      'berth: cannot remove instance "x": there is no instance "x"\n  log in with "berth login"',
    ],
    ['Conflict', 409, 5, 'berth: cannot remove instance "x": there is no instance "x"\n'],
    ['Unavailable', 503, 6, 'berth: cannot remove instance "x": there is no instance "x"\n  the server is running'],
    ['Internal', 500, 1, 'berth: cannot remove instance "x": there is no instance "x"\n'],
  ])('%s', async (code, status, expected, message) => {
    const { stderr, exitCode } = await runBerth(['rm', 'x'], {
      handler: () => refusal(status, code, 'there is no instance "x"'),
    });
    expect(stderr).toContain(message);
    expect(exitCode).toBe(expected);
  });

  it('a page that is not ours', async () => {
    const { stderr, exitCode } = await runBerth(['ps'], { handler: () => ({ json: '<html>' }) });
    expect(exitCode).not.toBe(0);
    expect(stderr).toMatch(/^berth: /);
  });

  it('an unknown command, with the nearest', async () => {
    const { stderr, exitCode } = await runBerth(['pss']);
    expect(stderr).toBe('berth: there is no command "pss"\n  did you mean "berth ps"? "berth --help" shows all\n');
    expect(exitCode).toBe(2);
    expect(await runBerth(['step', 'web'])).toMatchObject({
      exitCode: 2,
      stderr: 'berth: there is no command "step"\n  "berth --help" shows the commands\n',
    });
  });

  it.each([
    ['nope', '"berth volume --help" shows the commands'],
    ['snapshoot', 'did you mean "berth volume snapshot"? "berth volume --help" shows all'],
  ])('an unknown command below a noun, as help does: %s', async (word, hint) => {
    const expected = { stdout: '', exitCode: 2, stderr: `berth: there is no command "volume ${word}"\n  ${hint}\n` };
    expect(await runBerth(['volume', word])).toMatchObject(expected);
    expect(await runBerth(['help', 'volume', word])).toMatchObject(expected);
  });

  it('a kind that is not there, with the nearest', async () => {
    const { stderr, exitCode } = await runBerth(['get', 'instnces']);
    expect(stderr).toContain('did you mean "instance"?');
    expect(exitCode).toBe(2);
  });

  it('goes on with the other names, and counts', async () => {
    const handler: Handler = ({ path }) =>
      path.endsWith('/gone') ? refusal(404, 'NotFound', 'there is no instance "gone"') : { json: testInstance('web') };
    const { stdout, stderr, exitCode } = await runBerth(['rm', 'gone', 'web'], { handler });
    expect(stdout).toBe('web is being removed\n');
    expect(stderr).toContain('cannot remove instance "gone"');
    expect(stderr).toContain('1 of 2 failed');
    expect(exitCode).toBe(3);
  });
});

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

describe('berth show', () => {
  it('tells on a page what people ask of an instance', async () => {
    const web = testInstance('web', {
      metadata: { labels: { tier: 'web' } },
      spec: { cpus: 2, memoryMiB: 2048, volumes: [{ name: 'data', readOnly: true }] },
      status: {
        restartCount: 1,
        guest: {
          ready: true,
          address: '192.168.122.17',
          ports: [{ hostAddress: '127.0.0.1', hostPort: 8080, guestPort: 80, protocol: 'tcp' }],
        },
      },
    });
    const { stdout, requests } = await runBerth(['show', 'web'], { handler: () => ({ json: web }) });
    expect(requests[0]).toMatchObject({ method: 'GET', path: '/v1/instances/web' });
    expect(stdout.split('\n').map((line) => line.trim().replace(/ {2,}/, ' | '))).toEqual([
      'web | Running, ready',
      'host | h1',
      'address | 192.168.122.17',
      'port | 127.0.0.1:8080 on h1 -> 80/tcp',
      'image | tiny',
      'cpus | 2',
      'memory | 2 GiB',
      'volume | data, read only',
      'label | tier=web',
      'restarts | 1',
      'age | 90s',
      'more | berth explain web, berth events web, berth get instance web -o yaml',
      '',
    ]);
  });

  it('says why one waits, and gives programs all of it', async () => {
    const handler: Handler = () => ({ json: instances[1] });
    expect((await runBerth(['show', 'big'], { handler })).stdout).toMatch(/^big {2}Pending\n {2}why +0 of/);
    expect(JSON.parse((await runBerth(['show', 'big', '-o', 'json'], { handler })).stdout)).toMatchObject({
      metadata: { name: 'big' },
    });
  });
});

it.each(['run', 'exec', 'project create'])(
  'berth %s --help says what a flag defaults to where there is news in it',
  async (words) => {
    const { stdout } = await runBerth([...words.split(' '), '--help']);
    expect(stdout).toMatch(/may be\s+repeated/);
    expect(stdout).not.toMatch(/default: \[\]|repeatable/);
  },
);

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

it.each([
  ['that --apply mends it', { code: 'OrphanRecord', repair: 'removes the record' }, '', 'repaired with --apply'],
  [
    'which flags remove it',
    { code: 'UnknownGuest', repair: 'orders its removal', destroys: true },
    '',
    'only by --apply --remove-unknown',
  ],
  ['that --apply has no way to mend it', { code: 'Stuck' }, '', '--apply can repair none of it'],
  ['that a person is needed for what is left', { code: 'Stuck' }, '--apply', 'needs an operator'],
])('berth verify says of what it found %s', async (_, finding, flag, advice) => {
  const checked = { instances: 1, allocations: 1, providers: 1, hosts: 1, hostsHeard: 1 };
  const findings = [{ subject: 'host h1', message: 'it does not fit', cause: 'a fault', ageMs: 90_000, ...finding }];
  const report = { findings, young: 0, checked, repaired: [], watchedMs: 3_600_000 };
  const words = ['verify', ...(flag === '' ? [] : [flag])];
  const { stderr, exitCode } = await runBerth(words, { handler: () => ({ json: report }) });
  expect(stderr).toContain(advice);
  expect(exitCode).toBe(7);
});

it.each([
  ['list', '/v1/instances'],
  ['host list', '/v1/hosts'],
  ['volume list', '/v1/volumes'],
])('berth %s is another word for ls', async (words, path) => {
  const { exitCode, requests } = await runBerth(words.split(' '), { handler: () => page([]) });
  expect({ exitCode, path: requests[0]?.path }).toEqual({ exitCode: 0, path });
});

describe('berth logs', () => {
  const bytes = ['boot\r\n\u001b[3', '2mok\u001b[0m \u001b[2J\u001b]0;title\u0007', '\r\ndone\n'];
  const handler: Handler = ({ path }) => (path === '/v1/instances/web/log' ? { bytes } : undefined);

  it('passes bytes on as they are when piped', async () => {
    const { stdout, requests } = await runBerth(['logs', 'web', '--offset', '5'], { handler });
    expect(stdout).toBe(bytes.join(''));
    expect(requests[0]?.query).toEqual({ project: 'default', offset: '5', follow: 'false' });
  });

  it.each([
    ['0', ''],
    ['1', 'c\n'],
    ['2', '\nc\n'],
    ['3', 'b\n\nc\n'],
    ['4', '\nb\n\nc\n'],
    ['9', '\nb\n\nc\n'],
  ])('shows the last %s lines', async (lines, expected) => {
    const whole: Handler = () => ({ bytes: ['\nb', '\n\n', 'c\n'] });
    expect((await runBerth(['logs', 'web', '--tail', lines], { handler: whole })).stdout).toBe(expected);
  });

  it('counts a last line without its end, and goes on behind it', async () => {
    const begun: Handler = ({ query }) => ({ bytes: query['follow'] === 'true' ? ['d\n'] : ['a\nb\n', 'c'] });
    const { stdout, requests } = await runBerth(['logs', 'web', '-f', '-n', '2'], { handler: begun });
    expect(stdout).toBe('b\ncd\n');
    const reads = requests.filter(({ path }) => path.endsWith('/log'));
    expect(reads.map(({ query }) => [query['offset'], query['follow']])).toEqual([
      ['0', 'false'],
      ['5', 'true'],
    ]);
  });

  it('keeps lines and colours on a terminal, and spells out the rest', async () => {
    const { stdout } = await runBerth(['logs', 'web'], { handler, terminal: { columns: 80, rows: 24 } });
    expect(stdout).toBe('boot\n\u001b[32mok\u001b[0m \\x1b[2J\\x1b]0;title\\x07\ndone\n\u001b[0m');
  });
});

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

describe('berth image', () => {
  it('add guesses only the packing, from the ending', async () => {
    const handler: Handler = () => ({ status: 201, json: { metadata: { name: 'debian' } } });
    const add = ['image', 'add', 'debian', '--source', 'https://example.org/d.qcow2.zst', '--no-cloud-init'];
    const { stdout, stderr, exitCode, requests } = await runBerth(add, { handler });
    expect({ stdout, exitCode }).toEqual({ stdout: 'image debian added\n', exitCode: 0 });
    expect(stderr).toContain('else 4 CPUs and 8 GiB memory; --cpus and --memory change this');
    expect((await runBerth([...add, '--cpus', '1', '--memory', '512M'], { handler })).stderr).toBe('');
    expect(requests[0]?.body).toMatchObject({
      metadata: { name: 'debian' },
      spec: { decompress: 'zstd', nocloud: false },
    });
  });

  it('add says what to write for a container image that is named as engines take it', async () => {
    const { stderr, exitCode, requests } = await runBerth(['image', 'add', 'web', '--source', 'nginx:1.27']);
    expect(stderr).toContain('--source cannot be "nginx:1.27"');
    expect(stderr).toContain('write --source docker://docker.io/library/nginx:1.27\n');
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
  });

  const spec: ImageSpec = {
    source: 'file:///x',
    decompress: 'none',
    format: 'qcow2',
    nocloud: true,
    architecture: 'amd64',
    aliases: [],
    defaults: {},
    preload: false,
  };
  const image = { kind: 'image', metadata: { name: 'tiny', labels: {}, revision: 3 }, spec };
  const fetched = { name: 'tiny', digest: `sha256:${'a'.repeat(64)}`, sizeBytes: 5 * 1024 * 1024, key: imageKey(spec) };
  /** A host that shows `before`, and then `after`. */
  const hostThatFetches = (before: readonly object[], after: readonly object[]): Handler => {
    const host = (images: readonly object[]) => testHost('h1', { status: { images } });
    return ({ path, method, query, body }) => {
      if (path === '/v1/images/tiny')
        return { json: method === 'PUT' ? { ...image, ...(body as object), metadata: image.metadata } : image };
      if (query['watch']) return { lines: [{ type: 'put', revision: 8, resource: host(after) }] };
      return page([host(before), testHost('arm', { status: { architecture: 'arm64' } })]);
    };
  };

  it('ls shows what images take on hosts, or else at their source, and nothing when hosts may not be seen', async () => {
    const metadata = { ...image.metadata, createdAtMs: 0 };
    const images = [
      { ...image, metadata },
      { ...image, metadata: { ...metadata, name: 'far' }, spec: { ...spec, sizeBytes: 3 * 1024 * 1024 } },
    ];
    const list = (hosts: Handler): Promise<{ stdout: string }> =>
      runBerth(['image', 'ls'], {
        handler: (request) => (request.path === '/v1/images' ? page(images) : hosts(request)),
      });
    const shown = async (hosts: Handler): Promise<string> =>
      (await list(hosts)).stdout.replaceAll(/ +/g, ' ').replaceAll(/\n(\w+) .*? qcow2 /g, '\n$1 ');
    expect(await shown(() => page([testHost('h1', { status: { images: [fetched] } })]))).toMatch(
      /SIZE[^]*\nfar 3.0 MiB [^]*\ntiny 5.0 MiB /,
    );
    expect(await shown(() => refusal(403, 'Forbidden', 'hosts are not yours to see'))).toMatch(/\nfar 3.0 MiB /);
  });

  it('pull says why an image cannot be fetched, and does not wait for it', async () => {
    const missing = { name: 'tiny', digest: '', sizeBytes: 0, key: imageKey(spec), problem: 'HTTP 404 from x' };
    const handler = hostThatFetches([], [missing]);
    const { stdout, stderr, exitCode } = await runBerth(['image', 'pull', 'tiny'], { handler });
    expect(stdout).toBe('');
    expect(stderr).toContain('image "tiny" cannot be fetched; h1: HTTP 404 from x');
    expect(exitCode).toBe(7);
  });

  it('pull is content neither with an image of an earlier source nor ended by its failure', async () => {
    const earlier = { ...fetched, digest: `sha256:${'b'.repeat(64)}`, key: imageKey({ ...spec, source: 'file:///y' }) };
    const failed = { ...earlier, digest: '', problem: 'HTTP 404' };
    const unknown = { name: 'tiny', digest: earlier.digest, sizeBytes: 1 };
    const handler = hostThatFetches([earlier, failed, unknown], [earlier, fetched]);
    const { stdout, exitCode } = await runBerth(['image', 'pull', 'tiny'], { handler });
    expect(stdout).toBe('IMAGE  HOST     SIZE  DIGEST\ntiny   h1    5.0 MiB  sha256:aaaaaaaaaaaa\n');
    expect(exitCode).toBe(0);
  });

  it('prefetch asks for the image on the hosts and pools that are named, and waits for those', async () => {
    const other = testHost('h2', { status: { images: [] } });
    const inner = hostThatFetches([], [fetched]);
    const handler: Handler = (request) => {
      if (request.path === '/v1/pools') return page([{ metadata: { name: 'gpu' } }]);
      return request.path === '/v1/hosts' && !request.query['watch']
        ? page([testHost('h1', { status: { images: [] } }), other])
        : inner(request);
    };
    const prefetch = ['image', 'prefetch', 'tiny', '--host', 'h1', '--pool', 'gpu'];
    const { stdout, exitCode, requests } = await runBerth(prefetch, { handler });
    expect(stdout).toBe('IMAGE  HOST     SIZE  DIGEST\ntiny   h1    5.0 MiB  sha256:aaaaaaaaaaaa\n');
    expect(exitCode).toBe(0);
    expect(requests.find(({ method }) => method === 'PUT')?.body).toMatchObject({
      spec: { preload: false, prefetch: { hosts: ['h1'], pools: ['gpu'] } },
    });
    const nowhere = await runBerth(['image', 'prefetch', 'tiny'], { handler });
    expect(nowhere).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('no host or pool is given') });
  });

  it('pin and unpin say that it stays, or may go', async () => {
    const pinned = { ...image, spec: { ...spec, pinned: true } };
    for (const [verb, before, after] of [
      ['pin', image, pinned],
      ['unpin', pinned, image],
    ] as const) {
      const handler: Handler = ({ method, body }) => ({ json: method === 'PUT' ? body : before });
      const { exitCode, requests } = await runBerth(['image', verb, 'tiny'], { handler });
      expect(exitCode).toBe(0);
      expect(requests.find(({ method }) => method === 'PUT')?.body).toMatchObject({ spec: after.spec });
      const again: Handler = () => ({ json: after });
      expect((await runBerth(['image', verb, 'tiny'], { handler: again })).requests.map((one) => one.method)).toEqual([
        'GET',
      ]);
    }
  });

  it('ls --hosts shows which host has it, for how many guests, and where it is missing', async () => {
    const h1 = testHost('h1', { status: { images: [{ ...fetched, guests: 3 }] } });
    const h2 = testHost('h2', { status: { images: [{ ...fetched, digest: '', sizeBytes: 0, problem: 'HTTP 404' }] } });
    const handler: Handler = ({ path }) => page(path === '/v1/hosts' ? [h2, h1] : [image]);
    const { stdout } = await runBerth(['image', 'ls', '--hosts'], { handler });
    expect(stdout).toBe(
      'IMAGE  HOST     SIZE  GUESTS  DIGEST               PROBLEM\n' +
        'tiny   h1    5.0 MiB       3  sha256:aaaaaaaaaaaa  -\n' +
        'tiny   h2          -       0  -                    HTTP 404\n',
    );
  });

  it('pull asks for the image everywhere and waits for the hosts that can use it', async () => {
    const handler = hostThatFetches([], [fetched]);
    const { stdout, stderr, exitCode } = await runBerth(['image', 'pull', 'tiny'], { handler });
    expect(stderr).toBe('tiny: on 0 of 1 hosts\n');
    expect(stdout).toBe('IMAGE  HOST     SIZE  DIGEST\ntiny   h1    5.0 MiB  sha256:aaaaaaaaaaaa\n');
    expect(exitCode).toBe(0);
  });
});

describe('berth complete', () => {
  const offered = async (...words: string[]): Promise<string[]> =>
    (await completions(words))
      .split('\n')
      .flatMap((line) => (line === '' || line.startsWith(':') ? [] : [line.split('\t')[0] ?? '']));

  async function completions(words: readonly string[]): Promise<string> {
    const said: string[] = [];
    const log = vi.spyOn(console, 'log').mockImplementation((line: string) => void said.push(line)); // the library's only way to speak
    await runBerth(['complete', '--', ...words], { handler: lists });
    log.mockRestore();
    return said.join('\n');
  }

  it('knows the verbs', async () => expect(await offered('')).toEqual(expect.arrayContaining(['run', 'ps', 'host'])));
  it('knows the verbs of a noun', async () =>
    expect(await offered('host', '')).toEqual(expect.arrayContaining(['ls', 'pause'])));
  it('asks the server for instances', async () => expect(await offered('logs', '')).toEqual(['web', 'big']));
  it('asks the server for hosts', async () => expect(await offered('host', 'pause', '')).toEqual(['h1', 'h2']));
  it.each([
    ['instances, and leaves the rest of the word open', [''], 'web:\t\nbig:\t\n:2\n'],
    ['those that begin so', ['./file', 'w'], 'web:\t\n:2\n'],
    ['files, which are the shell’s, where no instance is meant', ['./f'], ':0\n'],
    ['files behind a flag that takes none', ['-r', './f'], ':0\n'],
  ])('offers %s, where files are copied', async (_, words, expected) =>
    expect((await runBerth(['complete', '--', 'cp', ...words], { handler: lists })).stdout).toBe(expected),
  );
  it('offers no instance as the value of a flag where files are copied', async () =>
    expect(await offered('cp', '--identity', 'w')).toEqual([]));
  it('asks the server for the images of a job, with their aliases', async () =>
    expect(await offered('job', 'run', '')).toEqual(await offered('run', '')));
  it('knows the drivers', async () =>
    expect(await offered('run', 'tiny', '--driver', '')).toEqual(expect.arrayContaining(['qemu', 'zones'])));
  it('knows the words that a description spells out', async () =>
    expect(await offered('run', 'tiny', '--restart', '')).toEqual(['never', 'on-failure', 'always']));
  it('knows the causes of retries', async () =>
    expect(await offered('job', 'run', '--retry-on', '')).toEqual(['infrastructure', 'failure']));
  it('knows the words that an option may be', async () =>
    expect(await offered('exec', 'web', '--by', '')).toEqual(['host', 'ssh']));
  it.each([
    [
      ['ps', '--w'],
      ['--watch', '--wide'],
    ],
    [['ssh', '--l'], ['--login']],
    [['exec', '--l'], ['--login']],
    [['image', 'add', '--default'], ['--default-user']],
  ])('knows the flags that begin so: %j', async (words, flags) => expect(await offered(...words)).toEqual(flags));
  it('knows the flags of a verb', async () =>
    expect(await offered('run', '--res')).toEqual([
      '--resource',
      '--restart',
      '--restart-delay',
      '--restart-delay-max',
      '--restart-limit',
      '--restart-disk',
    ]));
});
