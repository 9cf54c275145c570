// Machines become hosts of a real server that speaks TLS with its own authority.

import { createHash, sign, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IssuedCertificate, JoinToken, NewJoinToken } from '../../api/joining.ts';
import { testRegistration } from '../testing.ts';
import { hostKey, startTlsServer, type TestTls } from './test-tls.ts';

let tls: TestTls;
beforeAll(async () => {
  tls = await startTlsServer();
});
afterAll(() => tls.close());

const admin = () => tls.client({ ca: tls.ca }, tls.server.operatorToken);
const stranger = () => tls.client({ ca: tls.ca });
const newToken = (body: object = {}) => admin().json<NewJoinToken>('/v1/join-tokens', { method: 'POST', body });
const join = (host: string, token: string, request: string) =>
  stranger().json<IssuedCertificate>('/v1/join', { method: 'POST', body: { host, token, request } });

async function joined(host: string) {
  const [{ token }, key] = await Promise.all([newToken(), hostKey()]);
  const answer = await join(host, token, key.csr);
  return { ...key, token, answer, trust: { ca: tls.ca, cert: answer.certificate, key: key.key } };
}

describe('a server that speaks TLS', () => {
  it('is trusted by its authority, which anybody may ask for', async () => {
    const { items } = await stranger().json<{ items: { certificate: string; fingerprint: string }[] }>('/v1/ca');
    const digest = createHash('sha256').update(new X509Certificate(tls.ca).raw).digest('hex');
    expect(items).toMatchObject([{ fingerprint: `sha256:${digest}` }]);
    expect(tls.server.url).toMatch(/^https:/);
    await expect(tls.client({}).json('/v1/version')).rejects.toMatchObject({ code: 'Unavailable' });
  });

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('does not resume sessions of %s', async (version) => {
    const { port } = new URL(tls.server.url);
    const visit = async (session?: Buffer) => {
      const socket = connectTls({
        ...{ host: '127.0.0.1', port: Number(port), ca: tls.ca, minVersion: version, maxVersion: version },
        ...(session ? { session } : {}),
      });
      let offered = session;
      socket.on('session', (each) => (offered = each));
      await once(socket, 'secureConnect');
      const reused = socket.isSessionReused();
      socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      socket.resume();
      await once(socket, 'close');
      return { offered, reused };
    };
    const { offered } = await visit();
    expect((await visit(offered)).reused).toBe(false);
  });
});

describe('a join token', () => {
  it('is shown once, and listed without its secret', async () => {
    const { id, token, ...made } = await newToken({ uses: 2, labels: { rack: 'a' } });
    expect(token).toMatch(/^berth_j_[0-9A-Za-z]{10}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}\.[\w-]{43}$/);
    expect(made).toMatchObject({ uses: 2, usedBy: [], labels: { rack: 'a' } });
    const { items } = await admin().json<{ items: JoinToken[] }>('/v1/join-tokens');
    expect(items.find((each) => each.id === id)).toEqual({ id, ...made });
    expect(JSON.stringify(items)).not.toContain(token.slice(20, 60));
    await admin().json(`/v1/join-tokens/${id}`, { method: 'DELETE' });
    const { csr } = await hostKey();
    await expect(join('late', token, csr)).rejects.toMatchObject({ code: 'Unauthenticated' });
  });

  it('makes a host of its pool, with its labels', async () => {
    await expect(newToken({ pool: 'edge' })).rejects.toMatchObject({ code: 'NotFound', field: 'pool' });
    await admin().create('pool', { metadata: { name: 'edge' }, spec: {} });
    const { token } = await newToken({ pool: 'edge', labels: { rack: 'b' } });
    await join('edge-1', token, (await hostKey()).csr);
    expect(await admin().get('host', 'edge-1')).toMatchObject({
      metadata: { labels: { rack: 'b' } },
      spec: { pool: 'edge' },
    });
  });

  it('has one use, also for two at once', async () => {
    const [{ token }, one, other] = await Promise.all([newToken(), hostKey(), hostKey()]);
    const outcomes = await Promise.allSettled([join('first', token, one.csr), join('second', token, other.csr)]);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const { reason } = outcomes.find((each): each is PromiseRejectedResult => each.status === 'rejected') ?? {};
    expect(reason).toMatchObject({ code: 'Unauthenticated', message: expect.stringContaining('has been used') });
    await expect(join('third', token, one.csr)).rejects.toMatchObject({ code: 'Unauthenticated' });
  });

  it('gives the same key the same certificate again: its answer may have been lost', async () => {
    const { token, csr, answer } = await joined('lost-answer');
    expect((await join('lost-answer', token, csr)).certificate).toBe(answer.certificate);
    await expect(join('lost-answer', token, (await hostKey()).csr)).rejects.toMatchObject({ code: 'Unauthenticated' });
  });

  it.each([
    ['cut off', (token: string) => token.slice(0, 40)],
    ['mistyped', (token: string) => token.replace(/_(.)/, (_, c: string) => `_${c === 'j' ? 'k' : 'j'}`)],
    ['with another secret', (token: string) => token.replace(/[0-9A-Za-z]{43}/, 'A'.repeat(43))],
    ['empty', () => ' '],
  ])('is refused when it is %s', async (_, change) => {
    const { token } = await newToken();
    await expect(join('h', change(token), (await hostKey()).csr)).rejects.toMatchObject({ code: 'Unauthenticated' });
  });

  it('does not take over a host that exists', async () => {
    await joined('taken');
    const { token } = await newToken();
    const outcome = join('taken', token, (await hostKey('CN=taken')).csr);
    await expect(outcome).rejects.toMatchObject({ code: 'Conflict', field: 'host' });
  });

  it('does not bring back a host that was removed', async () => {
    const { csr, token: used } = await joined('gone');
    const { token } = await newToken();
    await admin().delete('host', 'gone');
    await expect(join('gone', token, csr)).rejects.toMatchObject({ code: 'Conflict' });
    await expect(join('gone', used, csr)).rejects.toMatchObject({ code: 'Unauthenticated' });
  });

  it('makes a certificate of a host that had a host token, with that', async () => {
    const hostToken = tls.server.hostToken('old');
    await tls.client({ ca: tls.ca }, hostToken).agent('old').register(testRegistration());
    const [{ token }, { csr, key }] = await Promise.all([newToken(), hostKey()]);
    await expect(join('old', token, csr)).rejects.toMatchObject({ code: 'Conflict' });
    const body = { host: 'old', token, request: csr };
    const { certificate } = await tls
      .client({ ca: tls.ca }, hostToken)
      .json<IssuedCertificate>('/v1/join', { method: 'POST', body });
    const credential = async () => (await admin().get('host', 'old')).status.credential;
    expect(await credential()).toBe('host-token');
    const again = { ...testRegistration(), session: 'with-its-certificate' };
    await tls.client({ ca: tls.ca, cert: certificate, key }).agent('old').register(again);
    expect(await credential()).toBe('certificate');
  });
});

describe('the certificate of a host', () => {
  it('opens the routes of its host, and no others', async () => {
    const { trust } = await joined('h1');
    await joined('h2');
    const { agent, json } = tls.client(trust);
    expect(await agent('h1').register(testRegistration())).toMatchObject({ epoch: 1 });
    await expect(agent('h2').register(testRegistration())).rejects.toMatchObject({ code: 'Forbidden' });
    await expect(json('/v1/hosts')).rejects.toMatchObject({ code: 'Forbidden' });
  });

  it('is not that of the host that the request names', async () => {
    const [{ token }, { csr, key }] = await Promise.all([newToken(), hostKey('CN=h1')]);
    const { certificate } = await join('honest', token, csr);
    expect(new X509Certificate(certificate).subject).toBe('CN=honest');
    const { agent } = tls.client({ ca: tls.ca, cert: certificate, key });
    await expect(agent('h1').register(testRegistration())).rejects.toMatchObject({ code: 'Forbidden' });
  });

  it('is refused at once when its host is removed, on a connection that is open, and after the name is created again', async () => {
    const { trust } = await joined('removed');
    const { agent } = tls.client(trust);
    await agent('removed').register(testRegistration());
    await admin().delete('host', 'removed');
    await expect(agent('removed').register(testRegistration())).rejects.toMatchObject({ code: 'Unauthenticated' });
    await admin().create('host', { metadata: { name: 'removed' }, spec: {} });
    await expect(agent('removed').register(testRegistration())).rejects.toMatchObject({ code: 'Unauthenticated' });
    await expect(tls.client(trust).agent('removed').register(testRegistration())).rejects.toMatchObject({
      code: 'Unauthenticated',
    });
  });

  it('is of no use to a server', async () => {
    const { answer, key } = await joined('impostor');
    const server = createTlsServer({ cert: answer.certificate, key });
    server.on('tlsClientError', () => {});
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address ? address.port : 0;
    const socket = connectTls({ host: '127.0.0.1', port, ca: tls.ca, checkServerIdentity: () => undefined });
    const [error] = await once(socket, 'error');
    expect(error).toMatchObject({ code: 'INVALID_PURPOSE' });
    server.close();
  });

  it('is renewed with its own key, the same again when the answer was lost', async () => {
    const { csr, key, answer, trust } = await joined('renewed');
    const renew = (certificate: string, by = key) =>
      stranger().json<IssuedCertificate>('/v1/renew', {
        method: 'POST',
        body: { certificate, request: csr, signature: sign('sha256', Buffer.from(csr), by).toString('base64') },
      });
    const next = await renew(answer.certificate);
    expect(next.certificate).not.toBe(answer.certificate);
    expect((await renew(answer.certificate)).certificate).toBe(next.certificate);
    await tls
      .client({ ...trust, cert: next.certificate })
      .agent('renewed')
      .register(testRegistration());
    const other = await hostKey();
    await expect(renew(next.certificate, other.key)).rejects.toMatchObject({ code: 'Unauthenticated' });
    await admin().delete('host', 'renewed', { force: true });
    await expect(renew(next.certificate)).rejects.toMatchObject({ code: 'Unauthenticated' });
  });
});

describe('the token of a host', () => {
  it('of a host that was removed does not work when the name is created again', async () => {
    const token = tls.server.hostToken('legacy');
    const { agent } = tls.client({ ca: tls.ca }, token);
    await agent('legacy').register(testRegistration());
    await admin().delete('host', 'legacy');
    await expect(agent('legacy').register(testRegistration())).rejects.toMatchObject({ code: 'Conflict' });
    const coming = await admin().hostToken('legacy');
    await admin().create('host', { metadata: { name: 'legacy' }, spec: {} });
    await expect(agent('legacy').register(testRegistration())).rejects.toMatchObject({ code: 'Unauthenticated' });
    expect(await admin().hostToken('legacy')).toEqual(coming);
    await tls.client({ ca: tls.ca }, coming.token).agent('legacy').register(testRegistration());
  });
});
