// Sessions of browsers over HTTP: what begins and ends them, and requests that other pages make with their cookie.

import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '../../../base/manual-clock.ts';
import { startTestServer } from '../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let clock: ManualClock;
beforeEach(async () => {
  clock = createManualClock();
  server = await startTestServer({ clock });
});
afterEach(() => server.close());

interface Answered {
  readonly status: number;
  readonly cookie: string | undefined;
  readonly json: Record<string, unknown>;
  /** Of its error; empty: none. */
  readonly message: string;
}

interface Asked {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** `fetch` would not let a test set these headers. */
function ask(method: string, path: string, { headers = {}, body }: Asked = {}): Promise<Answered> {
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request(`${server.url}${path}`, { method, headers: { ...type, ...headers } }, (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      answer.on('end', () => {
        const json = JSON.parse(text) as { error?: { message: string } } & Record<string, unknown>; // of the API
        const cookie = answer.headers['set-cookie']?.[0];
        resolve({ status: answer.statusCode ?? 0, cookie, json, message: json.error?.message ?? '' });
      });
    });
    sent.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const valueOf = ({ cookie }: Answered): string => cookie?.split(';')[0] ?? '';

async function tokenOf(role: string): Promise<string> {
  const body = { metadata: { name: 'ana' }, spec: { role, expiresInSec: 3_600 } };
  const { json } = await ask('POST', '/v1/tokens', { headers: bearer('operator'), body });
  return String(json['token']);
}

async function begin(token: string): Promise<string> {
  return valueOf(await ask('POST', '/v1/session', { headers: bearer(token) }));
}

describe('a session', () => {
  it('stands for the token that began it, in a cookie that scripts and other sites cannot use', async () => {
    const token = await tokenOf('viewer');
    const begun = await ask('POST', '/v1/session', { headers: bearer(token) });
    expect(begun.cookie).toMatch(/^berth-session=\S+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    expect(begun.cookie).not.toContain(token.slice(-40));
    const cookie = valueOf(begun);
    const who = await ask('GET', '/v1/whoami', { headers: { cookie } });
    expect(who.json).toMatchObject({ kind: 'token', name: 'ana', roles: [{ role: 'viewer' }] });
    const image = { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } };
    const own = { cookie, 'sec-fetch-site': 'same-origin' };
    expect(await ask('POST', '/v1/images', { headers: own, body: image })).toMatchObject({ status: 403 });
  });

  it('of the admin token ends when that is replaced', async () => {
    const cookie = await begin('operator');
    expect((await ask('GET', '/v1/whoami', { headers: { cookie } })).json).toMatchObject({ kind: 'admin' });
    const body = { digest: 'a'.repeat(64) };
    await ask('POST', '/v1/admin-token/rotate', { headers: bearer('operator'), body });
    expect((await ask('GET', '/v1/whoami', { headers: { cookie } })).status).toBe(401);
  });

  it('ends with its token, and after twelve hours', async () => {
    const cookie = await begin(await tokenOf('viewer'));
    await ask('DELETE', '/v1/tokens/ana', { headers: bearer('operator') });
    const revoked = await ask('GET', '/v1/whoami', { headers: { cookie } });
    expect([revoked.status, revoked.message]).toEqual([401, expect.stringContaining('not valid')]);
    const admin = await begin('operator');
    clock.advance(12 * 3_600_000);
    expect((await ask('GET', '/v1/whoami', { headers: { cookie: admin } })).message).toContain('log in again');
  });

  it('is logged out by deleting the cookie', async () => {
    expect((await ask('DELETE', '/v1/session')).cookie).toContain('berth-session=; Path=/');
  });

  it('cannot be had by a host, nor without a token', async () => {
    expect((await ask('POST', '/v1/session', { headers: bearer('host:h1') })).status).toBe(403);
    expect((await ask('POST', '/v1/session')).status).toBe(401);
  });
});

describe('a request with the cookie of a session', () => {
  const host = (): string => new URL(server.url).host;
  it.each([
    ['a read of the page', 'GET', () => ({ 'sec-fetch-site': 'same-origin' }), 200],
    ['an address that was typed', 'GET', () => ({ 'sec-fetch-site': 'none' }), 200],
    ['a read by another site', 'GET', () => ({ 'sec-fetch-site': 'cross-site' }), 401],
    ['a read by a neighbour of the domain', 'GET', () => ({ 'sec-fetch-site': 'same-site' }), 401],
    ['a write of the page', 'POST', () => ({ 'sec-fetch-site': 'same-origin' }), 200],
    ['a write of the page in a browser that sends Origin only', 'POST', () => ({ origin: server.url }), 200],
    ['a write by another site', 'POST', () => ({ 'sec-fetch-site': 'cross-site' }), 401],
    ['a write with a foreign Origin', 'POST', () => ({ origin: 'http://evil.example' }), 401],
    ['a write with an Origin that begins alike', 'POST', () => ({ origin: `http://${host()}.evil.example` }), 401],
    ['a write of a page without an origin', 'POST', () => ({ origin: 'null' }), 401],
    ['a write that shows neither', 'POST', () => ({}), 401],
    ['a write of a typed address', 'POST', () => ({ 'sec-fetch-site': 'none' }), 401],
  ])('%s', async (_, method, headers, status) => {
    const cookie = await begin('operator');
    const asked = method === 'GET' ? '/v1/whoami' : '/v1/can-i';
    const body = method === 'GET' ? {} : { body: { verb: 'read', resource: 'host' } };
    expect((await ask(method, asked, { headers: { cookie, ...headers() }, ...body })).status).toBe(status);
  });

  it.each([
    ['is cut', (value: string) => value.slice(0, -3)],
    ['has another end', (value: string) => `${value.slice(0, -2)}AA`],
    ['has another content', (value: string) => value.replace(/=.{8}/, '=eyJieSI7')],
    ['is a link', (value: string) => value.replace(/=.*/, '=abc.def')],
    ['is empty', () => 'berth-session='],
    ['is endless', () => `berth-session=${'a'.repeat(8_000)}`],
  ])('counts for nothing when it %s', async (_, change) => {
    const cookie = change(await begin('operator'));
    expect((await ask('GET', '/v1/whoami', { headers: { cookie } })).status).toBe(401);
  });

  it('goes by its token when it has one, too', async () => {
    const cookie = await begin('operator');
    const headers = { cookie, ...bearer(await tokenOf('viewer')) };
    expect((await ask('GET', '/v1/whoami', { headers })).json).toMatchObject({ kind: 'token', name: 'ana' });
  });
});

describe('a link', () => {
  const linkOf = async (token: string): Promise<string> => {
    const { json } = await ask('POST', '/v1/session/links', { headers: bearer(token) });
    return String(json['path']).replace('/ui/#link=', '');
  };
  const open = (link: string) => ask('POST', '/v1/session/open', { body: { link } });

  it('begins a session as the caller, once', async () => {
    const link = await linkOf(await tokenOf('viewer'));
    const cookie = valueOf(await open(link));
    expect((await ask('GET', '/v1/whoami', { headers: { cookie } })).json).toMatchObject({ name: 'ana' });
    const again = await open(link);
    expect([again.status, again.cookie, again.message]).toEqual([
      401,
      undefined,
      'this link was used; get another with "berth dashboard"',
    ]);
  });

  it('expires after ten minutes, and with its token', async () => {
    const late = await linkOf('operator');
    clock.advance(600_000);
    expect((await open(late)).message).toContain('expired');
    const revoked = await linkOf(await tokenOf('viewer'));
    await ask('DELETE', '/v1/tokens/ana', { headers: bearer('operator') });
    expect((await open(revoked)).message).toContain('was revoked');
  });

  it('is no session, and a session no link', async () => {
    const link = await linkOf('operator');
    expect((await ask('GET', '/v1/whoami', { headers: { cookie: `berth-session=${link}` } })).status).toBe(401);
    const cookie = await begin('operator');
    expect((await open(cookie.replace('berth-session=', ''))).status).toBe(401);
  });
});
