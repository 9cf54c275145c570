import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { systemClock } from '../../base/system.ts';
import { httpCall, jsonOf, NoAnswer } from './http-call.ts';
import { type Answer, reply, TestServer } from './test-server.ts';

let server: TestServer;
let url: string;
beforeEach(async () => {
  server = new TestServer(reply(200, { a: 1 }));
  url = await server.listen();
});
afterEach(() => server.close());

const get = (more: object = {}) => httpCall(systemClock, { method: 'GET', url, ...more });

it('answers with status, headers and body', async () => {
  server.answer = reply(503, { a: 1 }, { 'retry-after': '3' });
  const answer = await get();
  expect(answer.status).toBe(503);
  expect(answer.header('retry-after')).toBe('3');
  expect(jsonOf(answer)).toEqual({ a: 1 });
});

it('follows no redirect', async () => {
  server.answer = reply(307, '', { location: 'http://169.254.169.254/' });
  expect((await get()).status).toBe(307);
  expect(server.asked).toHaveLength(1);
});

describe('there is no answer', () => {
  it.each<[string, Answer, string]>([
    ['from a server that hangs up', (_, response) => void response.socket?.destroy(), 'hang up'],
    [
      'that breaks off',
      (_, response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('{');
        response.socket?.end();
      },
      'aborted',
    ],
    ['over a mebibyte', reply(200, 'x'.repeat(1_048_577)), 'over 1048576 bytes'],
    ['with headers over 16 KiB', reply(200, '', { 'x-long': 'x'.repeat(20_000) }), 'Header overflow'],
  ])('%s', async (_, answer, why) => {
    server.answer = answer;
    await expect(get()).rejects.toEqual(expect.objectContaining({ name: 'NoAnswer', sent: true }));
    await expect(get()).rejects.toThrow(why);
  });

  it('from one that drips, when the time is over', async () => {
    const clock = createManualClock();
    server.answer = (_, response) => {
      response.writeHead(200);
      response.write('{', () => clock.advance(1_000));
    };
    const call = httpCall(clock, { method: 'GET', url, timeoutMs: 1_000 });
    await expect(call).rejects.toThrow('no answer within 1 s');
  });

  it('when the caller stops', async () => {
    const stop = new AbortController();
    server.answer = () => stop.abort();
    await expect(get({ signal: stop.signal })).rejects.toThrow('it was stopped');
    await expect(get({ signal: stop.signal })).rejects.toMatchObject({ sent: false });
  });

  it('from an address that is refused after the connection, and nothing was sent', async () => {
    await expect(get({ whyNot: (address: string) => `${address} is refused` })).rejects.toMatchObject({
      message: '127.0.0.1 is refused',
      sent: false,
    });
    expect(server.asked).toHaveLength(0);
  });
});

it('says that nothing was sent where nothing listens', async () => {
  const call = httpCall(systemClock, { method: 'GET', url: 'http://127.0.0.1:1' });
  await expect(call).rejects.toBeInstanceOf(NoAnswer);
  await expect(httpCall(systemClock, { method: 'GET', url: 'http://127.0.0.1:1' })).rejects.toMatchObject({
    sent: false,
  });
});
