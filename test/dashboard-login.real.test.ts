// A login by a provider in the dashboard: a real browser, a real server, a real OpenID provider.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createClient } from '../src/api/client/client.ts';
import { resolveConfig } from '../src/api/config.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemClock, systemFetch } from '../src/base/system.ts';
import { ServerConfig } from '../src/server/config.ts';
import { type RunningServer, startServer } from '../src/server/run.ts';
import { dashboardBrowser, noBrowser } from './dashboard-browser.ts';
import { type LoginProvider, startLoginProvider } from './login-provider.ts';

let directory: string;
let provider: LoginProvider;
let server: RunningServer;
const browser = dashboardBrowser();

beforeAll(async () => {
  if (noBrowser) return;
  directory = await mkdtemp(join(tmpdir(), 'berth-web-login-'));
  provider = await startLoginProvider();
  const { issuer } = provider;
  const clientSecretFile = join(directory, 'client.secret');
  await writeFile(clientSecretFile, 'hush\n', { mode: 0o600 });
  const common = { issuer, scopes: ['openid', 'profile', 'groups'], groupsClaim: 'groups' };
  const value = {
    listen: '127.0.0.1:0',
    dataDirectory: join(directory, 'server'),
    oidc: [
      { ...common, name: 'public', clientId: 'berth' },
      { ...common, name: 'secret', clientId: 'berth-web', clientSecretFile },
    ],
  };
  const sources = { file: { path: 'berth.yaml', value }, environment: {}, flags: {}, prefix: 'BERTH_SERVER_' };
  server = await startServer(resolveConfig(ServerConfig, sources), { log: silentLogger, clock: systemClock });
  const fetch = (url: string, init: Parameters<typeof systemFetch>[1]) => systemFetch(url, init);
  const admin = createClient({ fetch, url: server.url, token: server.operatorToken });
  const subjects = ['public', 'secret'].map((name) => ({ kind: 'group', name: 'team-ada', provider: name }) as const);
  await admin.create('binding', { metadata: { name: 'ada' }, spec: { role: 'viewer', project: 'web', subjects } });
});
afterAll(async () => {
  await server?.close();
  await provider?.close();
  if (directory) await rm(directory, { recursive: true, force: true });
});

/** The pages of the provider load fonts from elsewhere, and a browser that is not logged in is told so. */
const ofOthers = /ERR_NAME_NOT_RESOLVED|ERR_INTERNET_DISCONNECTED|40[134]/;

async function logIn(name: string, user: string): Promise<void> {
  const { page } = browser;
  await page.goto(`${server.url}/ui/instances`);
  await page.getByRole('button', { name: `Log in with ${name}` }).click();
  await page.locator('input[name=login]').fill(user);
  await page.locator('input[name=password]').fill('any');
  await page.locator('button[type=submit]').click();
  await page.locator('button[type=submit]').click(); // consent
}

describe.skipIf(noBrowser !== undefined)(`a login by a provider${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  it.each(['public', 'secret'])('shows the page that was asked for, with the rights of the user (%s)', async (name) => {
    const { page } = browser;
    await logIn(name, 'ada');
    await page.getByRole('heading', { name: 'Instances' }).waitFor();
    expect(new URL(page.url())).toMatchObject({ pathname: '/ui/instances', search: '' });
    await page.getByText('ada', { exact: true }).waitFor();
    const cookies = await page.context().cookies(server.url);
    expect(cookies.find((cookie) => cookie.name === 'berth-session')).toMatchObject({
      httpOnly: true,
      sameSite: 'Strict',
    });
    expect(await page.evaluate('document.cookie')).toBe('');
    browser.expectFaults(ofOthers);
  });

  it('says why a user without a role is not logged in', async () => {
    const { page } = browser;
    await logIn('public', 'eve');
    await page.getByText('no binding gives the user "eve"').waitFor();
    browser.expectFaults(ofOthers);
  });

  it('believes no answer to a login that this browser did not begin', async () => {
    const { page } = browser;
    await page.goto(`${server.url}/ui/login/callback?code=stolen&state=foreign`);
    await page.getByText('this browser did not begin this login').waitFor();
    expect(page.url()).toBe(`${server.url}/ui/`);
    browser.expectFaults(ofOthers);
  });
});
