// `berth login` from end to end: a real server, a real OpenID provider, and a browser that only follows links and submits forms.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createClient } from '../src/api/client/client.ts';
import { resolveConfig } from '../src/api/config.ts';
import type { Clock } from '../src/base/clock.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemClock, systemFetch } from '../src/base/system.ts';
import { runProgram } from '../src/cli/program.ts';
import { ServerConfig } from '../src/server/config.ts';
import { type RunningServer, startServer } from '../src/server/run.ts';
import { browse, type LoginProvider, startLoginProvider } from './login-provider.ts';

let directory: string;
let provider: LoginProvider;
let server: RunningServer;
/** How far the server's monotonic clock is ahead. */
let aheadMs = 0;
const clock: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs };

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-login-'));
  provider = await startLoginProvider();
  const { issuer } = provider;
  const secretFile = join(directory, 'client.secret');
  await writeFile(secretFile, 'hush\n', { mode: 0o600 });
  const common = { issuer, scopes: ['openid', 'profile', 'groups'], groupsClaim: 'groups' };
  const value = {
    listen: '127.0.0.1:0',
    dataDirectory: join(directory, 'server'),
    oidc: [
      { ...common, name: 'public', clientId: 'berth', deviceCode: true },
      { ...common, name: 'secret', clientId: 'berth-web', clientSecretFile: secretFile },
    ],
  };
  const sources = { file: { path: 'berth.yaml', value }, environment: {}, flags: {}, prefix: 'BERTH_SERVER_' };
  server = await startServer(resolveConfig(ServerConfig, sources), { log: silentLogger, clock });
  const admin = createClient({
    fetch: (url, init) => systemFetch(url, init),
    url: server.url,
    token: server.operatorToken,
  });
  await admin.create('binding', {
    metadata: { name: 'ada' },
    spec: {
      role: 'viewer',
      project: 'web',
      subjects: [
        { kind: 'group', name: 'team-ada', provider: 'public' },
        { kind: 'user', name: 'ada', provider: 'secret' },
      ],
    },
  });
});
afterAll(async () => {
  await server?.close();
  await provider?.close();
  await rm(directory, { recursive: true, force: true });
});

interface Run {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly page: string;
}

/** `berth WORDS`; `browser` gets what is printed for a person, and may go there. */
async function berth(
  words: readonly string[],
  browser?: (printed: string) => Promise<string> | undefined,
): Promise<Run> {
  let stdout = '';
  let stderr = '';
  let page: Promise<string> | undefined;
  const exitCode = await runProgram(
    {
      stdout: { write: (data) => (stdout += String(data)) },
      stderr: {
        write(data) {
          stderr += String(data);
          page ??= browser?.(stderr);
        },
      },
      stdin: (async function* () {})(),
      environment: { NO_COLOR: '1', BERTH_CONFIG: join(directory, 'context.yaml') },
      homeDirectory: directory,
      clock: systemClock,
      fetch: systemFetch,
      runProgram: () => Promise.resolve(0),
      self: ['berth'],
      version: 'test',
      interruption: () => new AbortController().signal,
    },
    words,
  );
  return { exitCode, stdout, stderr, page: (await page) ?? '' };
}

const asUser =
  (user: string, change = (url: string): string => url) =>
  (printed: string): Promise<string> | undefined => {
    const [, url] = /browser: (\S+)\n/.exec(printed) ?? [];
    return url === undefined ? undefined : browse(change(url), user).then(({ page }) => page);
  };

async function contexts(): Promise<{
  readonly current: string;
  readonly contexts: Record<string, { readonly token?: string; readonly tokenName?: string; readonly url: string }>;
}> {
  return parse(await readFile(join(directory, 'context.yaml'), 'utf8'));
}

describe('berth login', () => {
  it('gets a token in the browser, keeps it, and logs out', async () => {
    const login = await berth(['login', server.url, '--provider', 'public'], asUser('ada'));
    expect(login).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('as ada for 12h') });
    expect(login.page).toContain('You can close this page');
    expect(login.page).not.toContain('<script');
    const { current, contexts: all } = await contexts();
    expect(current).toBe('127.0.0.1');
    expect(all[current]).toMatchObject({ url: server.url, token: expect.stringMatching(/^berth_u_/) });
    expect(login.stdout + login.stderr).not.toContain(all[current]?.token);
    expect((await berth(['logout'])).exitCode).toBe(0);
    expect((await contexts()).contexts[current]).toEqual({ url: server.url });
  });

  it('leaves the exchange to the server where the client has a secret', async () => {
    const login = await berth(['login', server.url, '--provider', 'secret'], asUser('ada'));
    expect(login).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('as ada') });
  });

  it('gets a token by a code on another device', async () => {
    const login = await berth(['login', server.url, '--provider', 'public', '--device'], (printed) => {
      const [, url, code] = /open (\S+) on any device, and enter the code (\S+)\n/.exec(printed) ?? [];
      if (url === undefined || code === undefined) return undefined;
      return browse(`${url}?user_code=${code}`, 'ada').then(({ page }) => page);
    });
    expect(login).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('as ada') });
  });

  it('goes on when the provider has new keys', async () => {
    await provider.rotate();
    aheadMs += 31_000; // keys are read again after 30 s
    const login = await berth(['login', server.url, '--provider', 'public'], asUser('ada'));
    expect(login).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('as ada') });
  });
});

describe('berth login is refused', () => {
  const provider = ['--provider', 'public'];

  it('for a user without a role', async () => {
    const login = await berth(['login', server.url, ...provider], asUser('eve'));
    expect(login).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('no binding gives the user "eve"') });
  });

  it('when the answer has the state of another login', async () => {
    const login = await berth(
      ['login', server.url, ...provider],
      asUser('ada', (url) => url.replace(/state=[^&]+/, 'state=x')),
    );
    expect(login).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('is not to this login') });
    expect(login.page).toContain('The login failed');
  });

  it('when the ID token has the nonce of another login', async () => {
    const login = await berth(
      ['login', server.url, ...provider],
      asUser('ada', (url) => url.replace(/nonce=[^&]+/, 'nonce=x')),
    );
    expect(login).toMatchObject({
      exitCode: 4,
      stderr: expect.stringContaining('its nonce is not that of this login'),
    });
  });

  it('when the user refuses', async () => {
    const login = await berth(['login', server.url, ...provider], (printed) => {
      const [, url] = /browser: (\S+)\n/.exec(printed) ?? [];
      if (url === undefined) return undefined;
      const answer = new URL(new URL(url).searchParams.get('redirect_uri') ?? '');
      answer.search = new URLSearchParams({
        error: 'access_denied',
        state: new URL(url).searchParams.get('state') ?? '',
        iss: new URL(url).origin,
      }).toString();
      return fetch(answer).then((response) => response.text());
    });
    expect(login).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('refuses the login: access_denied') });
  });

  it('by device code where that is off', async () => {
    const login = await berth(['login', server.url, '--provider', 'secret', '--device']);
    expect(login).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('does not allow logins by device code'),
    });
  });

  it('without the name of one of several providers', async () => {
    const login = await berth(['login', server.url]);
    expect(login).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('public, secret') });
  });
});
