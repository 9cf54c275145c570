import { once } from 'node:events';
import { createConnection } from 'node:net';
import { request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { randomSecret } from '../../base/system.ts';
import { type MetadataServer, type MetadataServerOptions, serveMetadata } from './metadata-server.ts';

// Two guests as two addresses of loopback: what pins an address to a guest is tested where there are real networks.
const guests: Readonly<Record<string, string>> = { '127.0.0.2': 'ann', '127.0.0.3': 'ben' };
const clock = createManualClock();
let server: MetadataServer;

const open = async (change: Partial<MetadataServerOptions> = {}): Promise<void> => {
  server = await serveMetadata('127.0.0.1', {
    guestAt: (address) => guests[address],
    metadataOf: async (id) => ({
      metadataId: `${id}-1`,
      hostname: id,
      imageName: 'tiny',
      sshKeys: [],
      userData: `secret of ${id}`,
      vendorData: '',
    }),
    tokens: 'optional',
    clock,
    log: silentLogger,
    randomSecret,
    ...change,
  });
};
beforeEach(() => open());
afterEach(() => server.close());

interface Call {
  readonly from?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}
async function ask(path: string, { from = '127.0.0.2', method = 'GET', headers = {}, body }: Call = {}) {
  const call = request({
    host: '127.0.0.1',
    port: server.port,
    localAddress: from,
    path,
    method,
    agent: false,
    headers: { host: '169.254.169.254', ...headers },
  });
  call.end(body);
  const [response] = await once(call, 'response');
  let text = '';
  for await (const piece of response) text += String(piece);
  return { status: response.statusCode as number, text, headers: response.headers };
}
const userData = '/latest/user-data';
const ttl = (seconds: string) => ({ 'x-aws-ec2-metadata-token-ttl-seconds': seconds });
const token = async (from?: string): Promise<Record<string, string>> => {
  const given = await ask('/latest/api/token', {
    method: 'PUT',
    headers: ttl('60'),
    ...(from === undefined ? {} : { from }),
  });
  return { 'x-aws-ec2-metadata-token': given.text };
};

describe('the metadata service', () => {
  it('answers each guest of itself, by its address', async () => {
    expect(await ask(userData)).toMatchObject({ status: 200, text: 'secret of ann' });
    expect(await ask(userData, { from: '127.0.0.3' })).toMatchObject({ status: 200, text: 'secret of ben' });
  });
  it.each(['X-Forwarded-For', 'X-Real-IP', 'Forwarded', 'X-Instance-ID', 'True-Client-IP'])(
    'believes no %s',
    async (name) => {
      const headers = { [name]: '127.0.0.3', 'X-Instance-ID-Signature': '0'.repeat(64) };
      expect(await ask(userData, { headers })).toMatchObject({ text: 'secret of ann' });
    },
  );
  it('does not speak with whoever is no guest', async () => {
    await expect(ask(userData, { from: '127.0.0.9' })).rejects.toThrow(/hang up|ECONNRESET/);
  });
  it('is no web site under a name, so that no page can read it', async () => {
    expect(await ask(userData, { headers: { host: 'evil.example' } })).toMatchObject({ status: 400 });
  });
  it('has nothing elsewhere, and takes nothing', async () => {
    expect(await ask('/latest/meta-data/iam/')).toMatchObject({ status: 404 });
    expect(await ask(userData, { method: 'POST', body: 'x'.repeat(100_000) })).toMatchObject({ status: 405 });
    expect(await ask('/latest/api/token')).toMatchObject({ status: 405, headers: { allow: 'PUT' } });
  });
  it('answers HEAD without a body', async () => {
    expect(await ask(userData, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
  });

  describe('gives tokens', () => {
    it('that are good for their guest alone', async () => {
      const headers = await token();
      expect(await ask(userData, { headers })).toMatchObject({ status: 200, text: 'secret of ann' });
      expect(await ask(userData, { headers, from: '127.0.0.3' })).toMatchObject({ status: 401 });
    });
    it('that end when they said', async () => {
      const headers = await token();
      clock.advance(59_000);
      expect(await ask(userData, { headers })).toMatchObject({ status: 200 });
      clock.advance(2000);
      expect(await ask(userData, { headers })).toMatchObject({ status: 401 });
    });
    it('that the next agent does not take', async () => {
      const headers = await token();
      await server.close();
      await open();
      expect(await ask(userData, { headers })).toMatchObject({ status: 401 });
    });
    it.each(['0', '21601', '-1', '1e3', '', '60 '.repeat(3), '99999999'])('not for %j seconds', async (seconds) => {
      expect(await ask('/latest/api/token', { method: 'PUT', headers: ttl(seconds) })).toMatchObject({ status: 400 });
    });
    it('for as long as EC2 does, and says how long', async () => {
      const given = await ask('/latest/api/token', { method: 'PUT', headers: ttl('21600') });
      expect(given).toMatchObject({ status: 200, headers: ttl('21600') });
    });
    it('not to a proxy', async () => {
      const headers = { ...ttl('60'), 'X-Forwarded-For': '10.0.0.1' };
      expect(await ask('/latest/api/token', { method: 'PUT', headers })).toMatchObject({ status: 403 });
    });
    it('of which a changed one is refused, wherever it was changed', async () => {
      const good = (await token())['x-aws-ec2-metadata-token'] ?? '';
      for (const at of [0, 11, 12, 30, good.length - 2]) {
        const other = good[at] === 'z' ? 'y' : 'z';
        const bad = `${good.slice(0, at)}${other}${good.slice(at + 1)}`;
        expect(await ask(userData, { headers: { 'x-aws-ec2-metadata-token': bad } })).toMatchObject({ status: 401 });
      }
      for (const bad of ['', 'x', `${good}AAAA`, good.slice(0, 20)])
        expect(await ask(userData, { headers: { 'x-aws-ec2-metadata-token': bad } })).toMatchObject({ status: 401 });
    });
    it('and wants one where the host says so', async () => {
      await server.close();
      await open({ tokens: 'required' });
      expect(await ask(userData)).toMatchObject({ status: 401 });
      expect(await ask(userData, { headers: await token() })).toMatchObject({ status: 200 });
    });
  });

  it('answers a guest that asks too often with 429, and the others as ever', async () => {
    const seen = new Map<number, number>();
    for (let i = 0; i < 201; i++) {
      const { status } = await ask(userData);
      seen.set(status, (seen.get(status) ?? 0) + 1);
    }
    expect(seen).toEqual(
      new Map([
        [200, 200], // as many at once as there may be; the clock stands
        [429, 1],
      ]),
    );
    expect(await ask(userData, { from: '127.0.0.3' })).toMatchObject({ status: 200 });
    clock.advance(1000);
    expect(await ask(userData)).toMatchObject({ status: 200 });
  });
  it('refuses headers without end', async () => {
    expect(await ask(userData, { headers: { big: 'x'.repeat(10_000) } })).toMatchObject({ status: 431 });
  });
  it('holds no more than 16 connections of one guest', async () => {
    const dial = () => createConnection({ host: '127.0.0.1', port: server.port, localAddress: '127.0.0.2' });
    const held = Array.from({ length: 16 }, dial);
    await Promise.all(held.map((socket) => once(socket, 'connect')));
    const one = dial();
    one.on('error', () => {}); // it may be reset
    await once(one, 'close');
    expect(await ask(userData, { from: '127.0.0.3' })).toMatchObject({ status: 200 });
    const closed = once(held[0] as (typeof held)[number], 'close');
    held[0]?.destroy();
    await closed;
    for (const socket of held) socket.destroy();
  });
});
