import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { endOf } from './guest-end.ts';
import { type Handler, page, refusal, runBerth, testInstance } from '../testing.ts';

const ended = (reason: string, message: string) => [{ type: 'Running', status: 'False', reason, message, sinceMs: 0 }];
const failed = { phase: 'Failed', conditions: ended('BootFailed', 'the kernel stopped') };
const exited = { phase: 'Exited', conditions: ended('Exited', 'the guest powered itself off') };
const running = { phase: 'Running', incarnation: 1 };

const failedText = 'instance "web" has failed: BootFailed: the kernel stopped';
const exitedText = 'instance "web" has ended: the guest powered itself off';
const advice = '  see: berth logs web, berth events web\n';

const textOf = (status: object, spec = {}) =>
  endOf(testInstance('web', { status, spec }) as unknown as Parameters<typeof endOf>[0])?.message; // a whole one, for tests

describe('how an instance ended', () => {
  it.each([
    ['that failed', failed, {}, failedText],
    [
      'that failed and is to be restarted',
      failed,
      { restartPolicy: 'OnFailure' },
      'instance "web" has failed and will be restarted: BootFailed: the kernel stopped',
    ],
    ['that powered itself off', exited, {}, exitedText],
    ['that is stopped', { phase: 'Stopped' }, { powerState: 'stopped' }, 'instance "web" is stopped'],
    ['that is being removed', { phase: 'Deleting' }, {}, 'instance "web" is being removed'],
    ['that runs', running, {}, undefined],
    ['that waits', { phase: 'Pending' }, {}, undefined],
  ])('is told of one %s', (_, status, spec, expected) => expect(textOf(status, spec)).toBe(expected));
});

describe.each([
  ['failed', failed, failedText],
  ['has ended', exited, exitedText],
])('of an instance that %s', (_, status, text) => {
  const instance = testInstance('web', {
    status: { ...status, guest: { state: 'failed', ready: false, address: '192.0.2.7', ports: [], phases: [] } },
  });
  const handler: Handler = ({ path }) => {
    if (path === '/v1/instances/web') return { json: instance };
    return path === '/v1/instances/web/log' ? { bytes: ['booting\n'] } : undefined;
  };

  it.each([[[]], [['--ports']]])('berth ip %j says so, and not the address that it had', async (more) => {
    const { stdout, stderr, exitCode } = await runBerth(['ip', 'web', ...more], { handler });
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: '', stderr: `berth: ${text}\n${advice}`, exitCode: 7 });
  });

  it.each([[[]], [['-f']], [['-n', '1']]])('berth logs %j says so after its console', async (more) => {
    const { stdout, stderr, exitCode } = await runBerth(['logs', 'web', ...more], { handler });
    expect({ stdout, stderr, exitCode }).toEqual({ stdout: 'booting\n', stderr: `berth: ${text}\n`, exitCode: 0 });
  });

  it('berth logs says so where its host has no console of it', async () => {
    const { stderr, exitCode } = await runBerth(['logs', 'web'], {
      handler: (request) =>
        request.path.endsWith('/log') ? refusal(404, 'NotFound', 'it has no guest on this host') : handler(request),
    });
    expect({ stderr, exitCode }).toEqual({ stderr: `berth: ${text}\n${advice}`, exitCode: 5 });
  });

  it('berth ssh says so, and starts no ssh', async () => {
    let started = 0;
    const { stderr, exitCode } = await runBerth(['ssh', 'web'], { handler, onProgram: () => ++started });
    expect({ stderr, exitCode, started }).toEqual({ stderr: `berth: ${text}\n${advice}`, exitCode: 5, started: 0 });
  });

  it.each([
    ['exec', ['exec', 'web', '--', 'ls']],
    ['console', ['console', 'web']],
  ])('berth %s says so where the host refuses it', async (_way, words) => {
    await using refusing = await refusingServer({ code: 'Conflict', message: 'the guest does not run: it is failed' });
    const { stderr, exitCode } = await runBerth(words, { handler, environment: { BERTH_URL: refusing.url } });
    expect({ stderr, exitCode }).toEqual({ stderr: `berth: ${text}\n${advice}`, exitCode: 5 });
  });
});

describe('of an instance that runs', () => {
  const log: Handler = ({ path }) => (path === '/v1/instances/web/log' ? { bytes: ['booting\n'] } : undefined);
  const web = testInstance('web', { status: running });

  it('berth logs says nothing more', async () => {
    const handler: Handler = (request) => (request.path === '/v1/instances/web' ? { json: web } : log(request));
    expect((await runBerth(['logs', 'web'], { handler })).stderr).toBe('');
  });

  it('berth logs -f waits for the report when its console comes to its end', async () => {
    const late = { ...web, status: { ...running, ...failed } };
    const handler: Handler = (request) => {
      if (request.path === '/v1/instances/web') return { json: web };
      if (request.path !== '/v1/instances') return log(request);
      if (request.query['watch'] === undefined) return page([web]);
      return { lines: [{ type: 'put', revision: 8, resource: late }] };
    };
    const { stdout, stderr } = await runBerth(['logs', '-f', 'web'], { handler });
    expect({ stdout, stderr }).toEqual({ stdout: 'booting\n', stderr: `berth: ${failedText}\n` });
  });
});

/** Refuses every WebSocket with this error. */
async function refusingServer(error: object): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer();
  server.on('upgrade', (_request, socket) => {
    const body = JSON.stringify({ error });
    socket.end(`HTTP/1.1 409 Conflict\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}
