import { describe, expect, it } from 'vitest';
import { ready } from '../test-fleet.ts';
import { type Handler, page, runBerth, testInstance } from '../testing.ts';

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
