// Access to guests, with a server that refuses what a host would refuse: the messages to the user, and that nothing is
// printed before a refusal.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Handler, refusal, runBerth, testInstance } from '../testing.ts';

const nobody: Handler = () => refusal(404, 'NotFound', 'there is no instance "nope"');
const stopped: Handler = () => ({
  json: testInstance('web', { status: { phase: 'Stopped' }, spec: { powerState: 'stopped' } }),
});
const runs: Handler = ({ path }) =>
  path === '/v1/instances/web' ? { json: testInstance('web', { metadata: { id: 'inst_web' } }) } : undefined;
const homeDirectory = await mkdtemp(join(tmpdir(), 'berth-ways-in-'));
afterAll(() => rm(homeDirectory, { recursive: true }));
/** What listens ends at once. */
const interruption = AbortSignal.abort();

describe.each([
  ['port-forward', 'web', '0:80'],
  ['vnc', 'web'],
  ['screenshot', 'web', '-o', '-'],
])('berth %s', (...words) => {
  it('promises nothing of an instance that is not there', async () => {
    const { stdout, stderr, exitCode } = await runBerth(words, { handler: nobody, interruption });
    expect(stderr).toMatch(/^berth: cannot .* of instance "web".*: there is no instance "nope"\n {2}"berth ps"/);
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 3 });
  });

  it('promises nothing of an instance that does not run', async () => {
    const { stdout, stderr, exitCode } = await runBerth(words, { handler: stopped, interruption });
    expect(stderr).toBe('berth: instance "web" is stopped\n  start it: berth start web\n');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 5 });
  });
});

describe('berth ssh', () => {
  const words = (onProgram: () => number, ...more: string[]) =>
    runBerth(['ssh', ...more], { handler: runs, onProgram, homeDirectory });

  it('says how to name the user and the key when ssh has failed', async () => {
    const { stderr, exitCode } = await words(() => 255, 'web');
    expect(stderr).toBe(
      '  it was given no SSH key: berth run IMAGE --ssh-key FILE\n  if it refused the login, name the user: berth ssh -l USER web, and the key: -i FILE\n',
    );
    expect(exitCode).toBe(255);
  });

  it('says nothing where both were named, or the command has failed', async () => {
    expect((await words(() => 255, '-i', 'key', 'ann@web')).stderr).toBe('');
    expect((await words(() => 3, 'web')).stderr).toBe('');
  });
});

describe('where the host refuses the way', () => {
  let server: Server;
  let environment: Record<string, string>;
  let answer: object;

  beforeEach(async () => {
    server = createServer();
    server.on('upgrade', (_request, socket) => {
      const body = JSON.stringify({ error: answer });
      socket.end(
        `HTTP/1.1 409 Conflict\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
      );
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    environment = { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }; // it listens on a port
  });
  afterEach(() => void server.close());

  it('berth vnc says so before it listens', async () => {
    answer = { code: 'Conflict', message: 'the driver container has no screen for its guests' };
    const { stdout, stderr, exitCode } = await runBerth(['vnc', 'web'], { handler: runs, environment, interruption });
    expect(stderr).toContain('cannot forward the screen of instance "web": the driver container has no screen');
    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 5 });
  });

  it('berth console names the ways that there are, where there is none', async () => {
    const message = 'guests of the driver container have no console to attach to';
    answer = { code: 'Conflict', message, details: { reason: 'NoConsole' } };
    const { stderr, exitCode } = await runBerth(['console', 'web'], { environment });
    expect(stderr).toBe(
      `berth: cannot attach to the console of instance "web": ${message}\n  "berth logs -f web" follows its output; "berth exec -it web -- sh" opens a shell in a container\n`,
    );
    expect(exitCode).toBe(5);
  });

  it('berth exec says how a suspended instance goes on', async () => {
    answer = { code: 'Conflict', message: 'it is suspended', details: { reason: 'Suspended' } };
    const { stderr, exitCode } = await runBerth(['exec', 'web', '--', 'ls'], { environment });
    expect(stderr).toBe(
      'berth: cannot run a command in instance "web": it is suspended\n  resume it first: berth resume web\n',
    );
    expect(exitCode).toBe(5);
  });

  it('berth console gives no advice twice', async () => {
    answer = { code: 'Conflict', message: 'it is not placed on a host; "berth explain web" says why' };
    const { stderr } = await runBerth(['console', 'web'], { environment });
    expect(stderr.match(/berth explain web/g)).toHaveLength(1);
  });
});
