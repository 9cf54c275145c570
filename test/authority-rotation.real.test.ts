// The authority of a fleet is replaced under a real server and agent that speak TLS, and a context that pins it follows.

import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { once } from 'node:events';
import { X509Certificate } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { AgentConfig } from '../src/agent/config.ts';
import { joinFleet } from '../src/agent/enrolment/join.ts';
import { startAgent } from '../src/agent/run.ts';
import { parse } from '../src/api/parse.ts';
import { createUserClient } from '../src/api/client/user-client.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemClock } from '../src/base/system.ts';
import { TlsFetch } from '../src/base/tls/tls-fetch.ts';
import { startTlsServer } from '../src/server/tls/test-tls.ts';
import { runBerth } from './processes.ts';

it('a new authority takes over while hosts and contexts go on', async () => {
  const tls = await startTlsServer({ heartbeatMs: 100 });
  onTestFinished(() => tls.close());
  const { url, operatorToken } = tls.server;
  let ca = tls.ca;
  const fetch = new TlsFetch(() => ({ ca }));
  onTestFinished(() => fetch.close());
  const client = createUserClient({ fetch: fetch.fetch, url, token: operatorToken });

  const { token } = await client.json<{ token: string }>('/v1/join-tokens', { method: 'POST', body: {} });
  const dataDirectory = join(tls.directory, 'agent');
  await mkdir(dataDirectory);
  await joinFleet({
    serverUrl: url,
    token,
    hostName: 'h1',
    dataDirectory,
    userAgent: 'test',
    nowMs: systemClock.nowMs(),
  });
  const config = parse(AgentConfig, { serverUrl: url, hostName: 'h1', dataDirectory, drivers: ['fake'] });
  const agent = await startAgent(config, { log: silentLogger });
  onTestFinished(() => agent.close());
  const states = async () => (await client.authorityStatus()).hosts;
  await expect.poll(states).toMatchObject([{ host: 'h1', state: 'new' }]); // it has used its certificate

  const environment = { BERTH_CONFIG: join(tls.directory, 'contexts.yaml') };
  const berth = (...words: string[]) => runBerth(words, environment);
  const pin = tls.server.caFingerprint ?? '';
  const tokenFile = join(tls.directory, 'operator.token');
  await berth('context', 'set', 'fleet', '--url', url, '--ca-fingerprint', pin, '--token-file', tokenFile);

  const begun = await berth('ca', 'rotate', '--overlap', '0s', '-o', 'json');
  expect(begun).toMatchObject({ code: 0, stderr: '' });
  const [old, next] = JSON.parse(begun.stdout).authorities;
  expect([old, next]).toMatchObject([
    { fingerprint: pin, servers: true, hosts: false },
    { servers: false, hosts: true },
  ]);
  await expect.poll(states, { timeout: 20_000 }).toMatchObject([{ host: 'h1', state: 'new' }]);
  const trusted = JSON.parse(await readFile(join(dataDirectory, 'identity.json'), 'utf8')).authorities as string;
  expect(trusted.match(/BEGIN/g)).toHaveLength(2);
  ca = trusted;

  const status = await berth('ca', 'status');
  expect(status.stdout).toContain('hosts with a certificate of the new authority: 1 of 1');
  expect(status.stdout).toContain('berth ca rotate --finish');
  expect(await readFile(environment.BERTH_CONFIG, 'utf8')).toMatch(/BEGIN[^]*BEGIN/); // the context has both

  expect(await berth('ca', 'rotate', '--finish')).toMatchObject({ code: 0, stderr: '' });
  const shown = async (): Promise<string> => {
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { issuer } = new X509Certificate(socket.getPeerCertificate().raw);
    socket.destroy();
    return issuer;
  };
  const issuer = new X509Certificate(
    (await client.json<{ items: { certificate: string }[] }>('/v1/ca')).items[0]?.certificate ?? '',
  ).subject.replace('root', 'servers');
  await expect.poll(shown).toBe(issuer);
  expect(await berth('host', 'ls')).toMatchObject({ code: 0, stdout: expect.stringContaining('h1') });
  // Heartbeats over new connections, with the certificate of the new authority, and only that is trusted in the end.
  await expect
    .poll(async () => JSON.parse(await readFile(join(dataDirectory, 'identity.json'), 'utf8')).authorities, {
      timeout: 20_000,
    })
    .not.toContain(tls.ca.trim());
  const { status: host } = await client.get('host', 'h1');
  expect(host.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
  await expect(tls.client({ ca: tls.ca }).json('/v1/version')).rejects.toMatchObject({ code: 'Unavailable' });
}, 60_000);

it('a host that was away during a rotation joins again, as the same host', async () => {
  const tls = await startTlsServer();
  onTestFinished(() => tls.close());
  const { url, operatorToken } = tls.server;
  let { ca } = tls;
  const fetch = new TlsFetch(() => ({ ca }));
  onTestFinished(() => fetch.close());
  const client = createUserClient({ fetch: fetch.fetch, url, token: operatorToken });
  const dataDirectory = join(tls.directory, 'agent');
  await mkdir(dataDirectory);
  const joinWithNewToken = async () => {
    const { token } = await client.json<{ token: string }>('/v1/join-tokens', { method: 'POST', body: {} });
    return joinFleet({
      serverUrl: url,
      token,
      hostName: 'h1',
      dataDirectory,
      userAgent: 'test',
      nowMs: systemClock.nowMs(),
    });
  };
  const before = await joinWithNewToken();
  expect((await joinWithNewToken()).already).toBe(true);

  await client.rotateAuthority({ overlapMs: 0 });
  const both = await client.json<{ items: { certificate: string }[] }>('/v1/ca');
  await expect(client.finishAuthorityRotation({ force: false })).rejects.toMatchObject({ code: 'Conflict' });
  await client.finishAuthorityRotation({ force: true });
  ca = both.items.map(({ certificate }) => certificate).join('\n');
  const next = both.items[1]?.certificate ?? '';
  const shows = () =>
    tls
      .client({ ca: next })
      .json('/v1/version')
      .then(
        () => 'the new one',
        () => 'the old one',
      );
  await expect.poll(shows, { timeout: 20_000 }).toBe('the new one');
  const again = await joinWithNewToken();
  expect(again).toMatchObject({
    already: false,
    identity: { hostId: before.identity.hostId, key: before.identity.key },
  });
  expect(again.identity.authorities).toBe(next);
  expect((await joinWithNewToken()).already).toBe(true);
}, 60_000);
