import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { type Handler, type RunResult, type RunSettings, refusal, runBerth, testNowMs } from '../../testing.ts';

const provider = {
  name: 'main',
  issuer: 'https://idp.example',
  clientId: 'berth',
  scopes: ['openid'],
  deviceCode: true,
  exchange: 'client',
};
const loggedIn = {
  token: 'berth_u_new',
  name: 'login-1',
  kind: 'user',
  user: 'ada',
  expiresAtMs: testNowMs + 12 * 3_600_000,
};

/** A server that lets everyone in. */
const server: Handler = ({ method, path }) => {
  if (path === '/v1/login') return { json: method === 'GET' ? { providers: [provider] } : loggedIn };
  if (method === 'DELETE' && path.startsWith('/v1/tokens/')) return { json: {} };
  return undefined;
};

/** Documents that are read piece by piece. */
const bytes = (json: unknown) => ({ bytes: [JSON.stringify(json)] });

async function home(contexts?: object): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-login-'));
  const path = join(directory, 'config.yaml');
  if (contexts) await writeFile(path, stringify(contexts), { mode: 0o600 });
  return path;
}

async function berth(words: readonly string[], file: string, settings: RunSettings = {}): Promise<RunResult> {
  const environment = { BERTH_URL: '', BERTH_TOKEN: '', BERTH_CONFIG: file, ...settings.environment };
  return runBerth(words, { handler: server, ...settings, environment });
}

const kept = async (file: string): Promise<unknown> => parse(await readFile(file, 'utf8'));

const github = {
  ACTIONS_ID_TOKEN_REQUEST_URL: 'https://ci.example/token?api-version=2',
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'request-token',
};
const withCi: Handler = (request) => (request.path === '/token' ? bytes({ value: 'signed.by.ci' }) : server(request));

describe('berth login as a CI job', () => {
  it('asks for an ID token for the URL of the server, and sends nothing else', async () => {
    const file = await home();
    const run = await berth(['login', 'https://berth.example', '--workload'], file, {
      handler: withCi,
      environment: github,
    });
    expect(run).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('as ada for 12h; context berth.example'),
    });
    const [asked, sent] = run.requests;
    expect(asked).toMatchObject({
      path: '/token',
      query: { 'api-version': '2', audience: 'https://berth.example' },
      headers: { authorization: 'bearer request-token' },
    });
    expect(sent).toMatchObject({ path: '/v1/login', body: { idToken: 'signed.by.ci' } });
    expect(sent?.headers['authorization']).toBeUndefined();
    expect(await kept(file)).toEqual({
      current: 'berth.example',
      contexts: { 'berth.example': { url: 'https://berth.example', token: 'berth_u_new', tokenName: 'login-1' } },
    });
  });

  it('takes another audience by --audience', async () => {
    const words = ['login', 'https://berth.example', '--workload', '--audience', 'fleet-1'];
    const { requests } = await berth(words, await home(), { handler: withCi, environment: github });
    expect(requests[0]?.query['audience']).toBe('fleet-1');
  });

  it('says which permission a job lacks', async () => {
    const run = await berth(['login', 'https://berth.example', '--workload'], await home());
    expect(run).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('id-token: write') });
  });

  it('shows nothing of the address of the CI system when that fails', async () => {
    const environment = { ...github, ACTIONS_ID_TOKEN_REQUEST_URL: 'https://ci.example/token?secret=hush' };
    const run = await berth(['login', 'https://berth.example', '--workload'], await home(), { environment });
    expect(run.exitCode).toBe(4);
    expect(run.stderr).not.toContain('hush');
  });

  it('takes an ID token from standard input, as of GitLab', async () => {
    const words = ['login', 'https://berth.example', '--id-token-file', '-'];
    const run = await berth(words, await home(), { stdin: 'signed.by.gitlab\n' });
    expect(run.requests).toMatchObject([{ body: { idToken: 'signed.by.gitlab' } }]);
  });
});

describe('berth login keeps the token', () => {
  const before = {
    current: 'dev',
    contexts: {
      dev: { url: 'http://127.0.0.1:7070', token: 'dev-token' },
      prod: { url: 'https://berth.example', token: 'old', project: 'web' },
    },
  };
  const words = ['--id-token-file', '-'];

  it('in the context of that server, and leaves the current one', async () => {
    const file = await home(before);
    const run = await berth(['login', 'https://berth.example/', ...words], file, { stdin: 'x' });
    expect(run.stdout).toContain('"berth context use prod" switches to it');
    expect(await kept(file)).toMatchObject({
      current: 'dev',
      contexts: { prod: { token: 'berth_u_new', tokenName: 'login-1', project: 'web' }, dev: { token: 'dev-token' } },
    });
  });

  it('in the current context where no server is named', async () => {
    const file = await home(before);
    await berth(['login', ...words], file, { stdin: 'x' });
    expect(await kept(file)).toMatchObject({ contexts: { dev: { token: 'berth_u_new' }, prod: { token: 'old' } } });
  });

  it('in a new context where another server has the name', async () => {
    const file = await home({ contexts: { 'berth.example': { url: 'https://elsewhere.example' } } });
    await berth(['login', 'https://berth.example:7070', ...words], file, { stdin: 'x' });
    expect(await kept(file)).toMatchObject({
      current: 'berth.example-2',
      contexts: { 'berth.example': { url: 'https://elsewhere.example' }, 'berth.example-2': { token: 'berth_u_new' } },
    });
  });

  it('in a context of the name that is given', async () => {
    const file = await home();
    await berth(['login', 'https://berth.example', '--context', 'work', ...words], file, { stdin: 'x' });
    expect(await kept(file)).toMatchObject({ current: 'work', contexts: { work: { url: 'https://berth.example' } } });
  });

  it('and says so when BERTH_TOKEN hides it', async () => {
    const run = await berth(['login', 'https://berth.example', ...words], await home(), {
      stdin: 'x',
      environment: { BERTH_TOKEN: 'other' },
    });
    expect(run.stderr).toContain('BERTH_TOKEN is set');
    expect(run.requests[0]?.headers['authorization']).toBeUndefined();
  });

  it.each([
    ['no server is known', ['login', ...words]],
    ['there is no context "nowhere"', ['login', '--context', 'nowhere', ...words]],
    ['is not the URL of a server', ['login', 'berth', ...words]],
    ['--device and --workload cannot be given together', ['login', 'https://b', '--device', '--workload']],
    ['--audience needs --workload', ['login', 'https://b', '--audience', 'x']],
    ['--provider and --workload cannot', ['login', 'https://b', '--provider', 'main', '--workload']],
  ])('but not when: %s', async (message, all) => {
    const run = await berth(all, await home(), { stdin: 'x' });
    expect(run).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message), requests: [] });
  });

  it('but not when the server refuses', async () => {
    const file = await home(before);
    const run = await berth(['login', ...words], file, {
      stdin: 'x',
      handler: () => refusal(403, 'Forbidden', 'no binding gives the user "x" a role'),
    });
    expect(run).toMatchObject({ exitCode: 4, stderr: expect.stringContaining('no binding gives the user') });
    expect(await kept(file)).toEqual(before);
  });
});

describe('berth logout', () => {
  const context = { url: 'https://berth.example', token: 't', tokenName: 'login-1', project: 'web' };

  it('revokes the token and removes it', async () => {
    const file = await home({ current: 'prod', contexts: { prod: context } });
    const run = await berth(['logout'], file);
    expect(run).toMatchObject({
      exitCode: 0,
      stdout: 'logged out of https://berth.example\n',
      requests: [{ method: 'DELETE', path: '/v1/tokens/login-1', headers: { authorization: 'Bearer t' } }],
    });
    expect(await kept(file)).toEqual({
      current: 'prod',
      contexts: { prod: { url: 'https://berth.example', project: 'web' } },
    });
  });

  it('removes a token that has expired', async () => {
    const file = await home({ current: 'prod', contexts: { prod: context } });
    const run = await berth(['logout'], file, { handler: () => refusal(401, 'Unauthenticated', 'no') });
    expect(run).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('removed here only') });
  });

  it('keeps the token while the server is away', async () => {
    const file = await home({ current: 'prod', contexts: { prod: context } });
    const run = await berth(['logout'], file, { handler: () => refusal(503, 'Unavailable', 'no') });
    expect(run.exitCode).toBe(6);
    expect(await kept(file)).toMatchObject({ contexts: { prod: { token: 't' } } });
  });

  it('keeps a token that is not of a login', async () => {
    const { tokenName: _login, ...plain } = context;
    const file = await home({ current: 'prod', contexts: { prod: plain } });
    const run = await berth(['logout'], file);
    expect(run).toMatchObject({ exitCode: 2, requests: [], stderr: expect.stringContaining('is kept') });
    expect(run.stderr).toContain('"berth context rm prod" removes the context');
    expect(await kept(file)).toMatchObject({ contexts: { prod: plain } });
  });

  it.each([
    ['there is no context', undefined],
    ['has no token', { current: 'prod', contexts: { prod: { url: 'https://berth.example' } } }],
  ])('says that %s', async (message, contexts) => {
    const run = await berth(['logout'], await home(contexts));
    expect(run).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) });
  });
});
