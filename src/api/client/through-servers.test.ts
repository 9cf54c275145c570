import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { seededPrng } from '../../base/prng.ts';
import { Servers } from './servers.ts';
import { createUserClient, type FetchInit, type FetchResponse } from './user-client.ts';

const urls = ['http://a', 'http://b', 'http://c'];

/** The behaviour of each server; `hangs` until the client gives up. */
type Deed =
  | 'answers'
  | 'refuses'
  | 'resets'
  | 'cannot now'
  | 'changed nothing'
  | 'not found'
  | 'hangs'
  | 'busy'
  | 'busy once';

function fleet(deeds: Record<string, Deed>, options: { readonly answerMsMax?: number } = {}) {
  const asked: string[] = [];
  const clock = createManualClock();
  // Pauses end immediately; the test advances the time limit of a response.
  const pausing = {
    ...clock,
    setTimer: (delayMs: number, fire: () => void) => clock.setTimer(delayMs <= 1_000 ? 0 : delayMs, fire),
  };
  const servers = new Servers({ urls, spread: { clock: pausing, prng: seededPrng(1) }, ...options });
  const fetch = async (url: string, init: FetchInit): Promise<FetchResponse> => {
    const server = new URL(url).origin;
    asked.push(server.slice(-1));
    switch (deeds[server.slice(-1)]) {
      case 'refuses':
        throw new TypeError('fetch failed', { cause: Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }) });
      case 'resets':
        throw new TypeError('fetch failed', { cause: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) });
      case 'cannot now':
        return answer(503, { error: { code: 'Unavailable', message: `${server} cannot write now` } });
      case 'changed nothing': {
        const details = { nothingChanged: true };
        return answer(503, { error: { code: 'Unavailable', message: 'a newer server has the store', details } });
      }
      case 'not found':
        return answer(404, { error: { code: 'NotFound', message: 'no such thing' } });
      case 'busy once':
        deeds[server.slice(-1)] = 'answers';
        return answer(429, { error: { code: 'TooManyRequests', message: 'too many', details: { retryAfterS: 3 } } });
      case 'busy':
        return answer(429, { error: { code: 'TooManyRequests', message: 'too many', details: { retryAfterS: 3 } } });
      case 'hangs':
        return new Promise((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('given up'))));
      default:
        return answer(200, { metadata: { revision: 1 } });
    }
  };
  const client = createUserClient({ fetch, url: servers });
  /** Advances pauses and limits while the request is in progress. */
  const passing = async <T>(request: Promise<T>): Promise<T> => {
    let over = false;
    const end = (): void => void (over = true);
    request.then(end, end);
    while (!over) await clock.advanceSettled(2_000, () => new Promise((resolve) => setImmediate(resolve)));
    return request;
  };
  return { client, servers, asked, passing };
}

function answer(status: number, body: unknown): FetchResponse {
  return {
    status,
    headers: new Headers(),
    body: (async function* () {})(),
    text: async () => JSON.stringify(body),
  };
}

describe('a server that refuses for too many requests', () => {
  it('is asked again after the time that it says, even what may not be repeated', async () => {
    const { client, asked, passing } = fleet({ a: 'busy once' });
    await passing(client.create('pool', { metadata: { name: 'p' }, spec: {} }));
    expect(asked).toEqual(['a', 'a']);
  });

  it('is asked a few times, and no other server in its place', async () => {
    const { client, asked, passing } = fleet({ a: 'busy' });
    await expect(passing(client.list('host'))).rejects.toMatchObject({ code: 'TooManyRequests' });
    expect(asked).toEqual(['a', 'a', 'a', 'a', 'a']);
  });
});

describe('a request to one of several servers', () => {
  it.each<[string, Record<string, Deed>, string, string]>([
    ['a dead one is passed over', { a: 'refuses', b: 'answers', c: 'answers' }, 'get', 'answered'],
    ['two dead ones are passed over', { a: 'refuses', b: 'refuses', c: 'answers' }, 'get', 'answered'],
    ['a read is repeated', { a: 'resets', b: 'answers', c: 'answers' }, 'get', 'answered'],
    ['one whose store is away is passed over', { a: 'cannot now', b: 'answers', c: 'answers' }, 'get', 'answered'],
    ['a create that was never sent goes elsewhere', { a: 'refuses', b: 'answers', c: 'answers' }, 'create', 'answered'],
    ['a create with a key is repeated', { a: 'resets', b: 'answers', c: 'answers' }, 'create with key', 'answered'],
    ['a create without a key is not repeated', { a: 'resets', b: 'answers', c: 'answers' }, 'create', 'Unavailable'],
    [
      'a create that changed nothing goes elsewhere',
      { a: 'changed nothing', b: 'answers', c: 'answers' },
      'create',
      'answered',
    ],
    [
      'a create that failed in an unknown way is not repeated',
      { a: 'cannot now', b: 'answers', c: 'answers' },
      'create',
      'Unavailable',
    ],
    [
      'what finds a revision is not repeated',
      { a: 'resets', b: 'answers', c: 'answers' },
      'replace at 7',
      'Unavailable',
    ],
    ['an answer is an answer', { a: 'not found', b: 'answers', c: 'answers' }, 'get', 'NotFound'],
    ['where no server answers, it says so', { a: 'refuses', b: 'refuses', c: 'refuses' }, 'get', 'Unavailable'],
  ])('%s', async (_, deeds, what, outcome) => {
    const { client, passing, servers, asked } = fleet(deeds);
    const body = { metadata: { name: 'web' }, spec: {} };
    const requests: Record<string, () => Promise<unknown>> = {
      get: () => client.get('instance', 'web'),
      create: () => client.create('instance', body),
      'create with key': () => client.create('instance', body, { idempotencyKey: 'k' }),
      'replace at 7': () => client.replace('instance', 'web', { metadata: { revision: 7 }, spec: {} }),
    };
    const request = requests[what] ?? expect.unreachable();
    const told = await passing(request()).then(
      () => 'answered',
      (error) => error.code,
    );
    expect(told).toBe(outcome);
    expect(new Set(asked).size).toBe(asked.length); // each at most once
    if (outcome === 'answered') expect(servers.current.slice(-1)).toBe(asked.at(-1));
  });

  it('stays with the one that works', async () => {
    const { client, passing, asked } = fleet({ a: 'refuses', b: 'answers', c: 'answers' });
    await passing(client.get('instance', 'web'));
    const [, second] = asked;
    await passing(client.get('instance', 'web'));
    expect(asked).toEqual(['a', second, second]);
  });

  it('prefers what a server has said to the silence of others', async () => {
    const { client, passing } = fleet({ a: 'refuses', b: 'cannot now', c: 'refuses' });
    await expect(passing(client.get('instance', 'web'))).rejects.toThrow('http://b cannot write now');
  });

  it('says the reason of a TLS failure in one line', async () => {
    const openSsl =
      '403D42:error:0A00010B:SSL routines:tls_validate_record_header:wrong version number:../ssl/a.c:77:\n';
    const failure = Object.assign(new Error(openSsl), { code: 'ERR_SSL_WRONG_VERSION_NUMBER' });
    const fetch = () => Promise.reject(new TypeError('fetch failed', { cause: failure }));
    await expect(createUserClient({ fetch, url: 'https://a' }).get('instance', 'web')).rejects.toThrow(
      'no answer from https://a: wrong version number: it seems to speak plain HTTP; write http://, or start it with --tls',
    );
  });

  it('gives one up that does not begin to answer', async () => {
    const { client, passing, servers } = fleet({ a: 'hangs', b: 'answers', c: 'answers' }, { answerMsMax: 8_000 });
    await passing(client.get('instance', 'web'));
    expect(servers.current).not.toBe('http://a');
  });

  it('is given up by its caller at any of them', async () => {
    const { client, servers, asked } = fleet({ a: 'hangs', b: 'answers', c: 'answers' });
    const over = new AbortController();
    const request = client.request('/v1/instances', { signal: over.signal });
    over.abort();
    await expect(request).rejects.toThrow('given up');
    expect([servers.current, asked]).toEqual(['http://a', ['a']]);
  });
});
