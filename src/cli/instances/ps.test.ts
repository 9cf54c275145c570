import { describe, expect, it } from 'vitest';
import { instances, lists, pending, ready } from '../test-fleet.ts';
import { type Handler, page, runBerth, testInstance } from '../testing.ts';

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
