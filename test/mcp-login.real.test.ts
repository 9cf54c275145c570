// A client of MCP that has no token: the official client asks the server which provider to use, a person logs in there, and the access
// token of the provider is taken for MCP, and for nothing else.

import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type OAuthClientProvider, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createUserClient, type UserClient } from '../src/api/client/user-client.ts';
import { parse } from '../src/api/parse.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemFetch } from '../src/base/system.ts';
import { ServerConfig } from '../src/server/config.ts';
import { type RunningServer, startServer } from '../src/server/run.ts';
import { browse, type LoginProvider, startLoginProvider } from './login-provider.ts';

let directory: string;
let provider: LoginProvider;
let server: RunningServer;
let api: UserClient;
/** Where the browser ends. */
let callback: string;
const landing = createHttpServer((_request, response) => response.end('done'));

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-mcp-login-'));
  provider = await startLoginProvider();
  await once(landing.listen(0, '127.0.0.1'), 'listening');
  callback = `http://127.0.0.1:${(landing.address() as AddressInfo).port}/callback`;
  const listen = `127.0.0.1:${await freePort()}`;
  const config = parse(ServerConfig, {
    ...{ listen, externalUrl: `http://${listen}`, dataDirectory: join(directory, 'server'), mcp: 'read' },
    oidc: [
      {
        ...{ name: 'main', issuer: provider.issuer, clientId: 'berth', groupsClaim: 'groups' },
        scopes: ['openid', 'profile', 'groups'],
      },
    ],
  });
  server = await startServer(config, { log: silentLogger });
  api = createUserClient({ fetch: systemFetch, url: server.url, token: server.operatorToken });
  await api.create('image', { metadata: { name: 'tiny' }, spec: { source: 'https://images.example/tiny.qcow2' } });
  await api.create('binding', {
    metadata: { name: 'ada' },
    spec: { role: 'viewer', project: 'default', subjects: [{ kind: 'group', name: 'team-ada', provider: 'main' }] },
  });
});
afterAll(async () => {
  landing.closeAllConnections();
  landing.close();
  await server?.close();
  await provider?.close();
  await rm(directory, { recursive: true, force: true });
});

/** What the official client keeps of a login. */
class Login implements OAuthClientProvider {
  readonly redirectUrl = callback;
  readonly clientMetadata = { redirect_uris: [this.redirectUrl], token_endpoint_auth_method: 'none' };
  accessToken = '';
  /** What the provider gave to the redirect. */
  answered = new URLSearchParams();
  #verifier = '';
  readonly #user: string;

  constructor(user: string) {
    this.#user = user;
  }

  clientInformation() {
    return { client_id: 'berth' };
  }
  tokens() {
    return this.accessToken === '' ? undefined : { access_token: this.accessToken, token_type: 'Bearer' };
  }
  saveTokens({ access_token }: { readonly access_token: string }) {
    this.accessToken = access_token;
  }
  async redirectToAuthorization(url: URL) {
    const { url: last } = await browse(url.href, this.#user);
    this.answered = new URL(last).searchParams;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier() {
    return this.#verifier;
  }
}

const post = (authorization?: string) =>
  fetch(`${server.url}/mcp`, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...(authorization === undefined ? {} : { authorization }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
  });

it('is told where to get a token', async () => {
  const metadata = `${server.url}/.well-known/oauth-protected-resource/mcp`;
  const challenge = `resource_metadata="${metadata}"`;
  expect((await post()).headers.get('www-authenticate')).toBe(`Bearer ${challenge}`);
  const wrong = await post('Bearer a.b.c');
  expect([wrong.status, wrong.headers.get('www-authenticate')]).toEqual([
    401,
    `Bearer error="invalid_token", ${challenge}`,
  ]);
  expect(await (await fetch(metadata)).json()).toEqual({
    ...{ resource: `${server.url}/mcp`, authorization_servers: [provider.issuer], resource_name: 'Berth' },
    ...{ scopes_supported: ['openid', 'profile', 'groups'], bearer_methods_supported: ['header'] },
  });
});

it('logs in at the provider, and has the rights of the user', async () => {
  const login = new Login('ada');
  const transport = () => new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { authProvider: login });
  const first = transport();
  await expect(new Client({ name: 'test', version: '1' }).connect(first)).rejects.toThrow(/nauthorized/);
  expect(login.answered.get('code')).toBeTruthy();
  await first.finishAuth(login.answered);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport());
  try {
    const listed = await client.callTool({ name: 'list', arguments: { kind: 'image' } });
    expect(listed.structuredContent).toMatchObject({ untrusted: [{ name: 'tiny' }] });
    expect(await client.callTool({ name: 'list', arguments: { kind: 'host' } })).toMatchObject({ isError: true });
  } finally {
    await client.close();
  }
  const elsewhere = await fetch(`${server.url}/v1/images`, {
    headers: { authorization: `Bearer ${login.accessToken}` },
  });
  expect(elsewhere.status).toBe(401);
  const { items } = await api.auditLog();
  expect(items).toContainEqual(expect.objectContaining({ face: 'mcp', kind: 'token', outcome: 'done' }));
});

it('has no rights without a binding', async () => {
  const login = new Login('eve');
  const transport = new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), { authProvider: login });
  await expect(new Client({ name: 'test', version: '1' }).connect(transport)).rejects.toThrow(/nauthorized/);
  await transport.finishAuth(login.answered);
  const refused = await post(`Bearer ${login.accessToken}`);
  expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('no binding')]);
});
