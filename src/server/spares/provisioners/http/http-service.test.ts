import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../../base/system.ts';
import { hiding } from '../../plain-line.ts';
import { type Answer, reply, TestServer } from '../../test-server.ts';
import { type HttpService, HttpServiceApi } from './http-service.ts';

let server: TestServer;
let url: string;
beforeEach(async () => {
  server = new TestServer(reply(201));
  url = await server.listen();
});
afterEach(() => server.close());

const secret = 'Bearer 0123456789';
function api(changes: Partial<HttpService> = {}): HttpServiceApi {
  const service: HttpService = {
    url: `${url}/spares`,
    searchUrl: `${url}/spares/{spare}`,
    releaseUrl: `${url}/spares/{spare}`,
    headers: { authorization: secret },
    ca: undefined,
    ...changes,
  };
  return new HttpServiceApi(service, { clock: systemClock, hide: hiding([secret]) });
}

describe('a call to make a spare', () => {
  it('has its id as idempotency key', async () => {
    expect(await api().make('spare_1', { pool: 'a' })).toEqual({ is: 'done', found: {} });
    const [asked] = server.asked;
    expect(asked).toMatchObject({ what: 'POST /spares', body: '{"pool":"a"}' });
    expect(asked?.headers).toMatchObject({ 'idempotency-key': 'spare_1', authorization: secret });
  });

  it.each<[string, Answer, object]>([
    [
      'made',
      reply(201, { address: '10.0.0.9', name: 'a\nb', more: 1 }),
      { is: 'done', found: { address: '10.0.0.9', name: 'a b' } },
    ],
    ['made without a word', reply(204, ''), { is: 'done', found: {} }],
    ['made, with a body that is no JSON', reply(200, '<html>'), { is: 'done', found: {} }],
    ['accepted', reply(202), { is: 'running' }],
    ['under way', reply(200, { status: 'running', message: 'at 3 %' }), { is: 'running', note: 'at 3 %' }],
    ['failed', reply(200, { status: 'failed', message: 'no disk' }), { is: 'failed', why: 'no disk' }],
    ['of an unknown status', reply(200, { status: 'ok?' }), { is: 'failed' }],
    [
      'refused',
      reply(422, { message: `pool of ${secret}` }),
      { refused: true, why: 'the service answered 422: pool of ***' },
    ],
    ['redirected', reply(301, '', { location: '/' }), { refused: true }],
    ['for later', reply(429), { why: 'the service answered 429' }],
    ['broken', reply(500, { error: 'oops' }), { perhaps: true, why: 'the service answered 500: oops' }],
    ['without an answer', (_, response) => void response.socket?.destroy(), { perhaps: true }],
  ])('%s', async (_, answer, expected) => {
    server.answer = answer;
    const found = await api().make('spare_1', {});
    expect(found).toMatchObject(expected);
    for (const flag of ['refused', 'perhaps']) if (!(flag in expected)) expect(found).not.toHaveProperty(flag);
  });

  it('that is only accepted needs a search', async () => {
    server.answer = reply(202);
    const made = await api({ searchUrl: undefined }).make('spare_1', {});
    expect(made).toMatchObject({ is: 'failed', why: expect.stringContaining('searchUrl') });
  });
});

describe('a search', () => {
  it.each<[string, Answer, object]>([
    ['that finds nothing', reply(404), { is: 'absent' }],
    ['that finds a spare', reply(200, { address: '10.0.0.9' }), { is: 'done', found: { address: '10.0.0.9' } }],
    ['that finds one under way', reply(200, { status: 'running' }), { is: 'running' }],
    ['without rights', reply(401), { is: 'unanswered', refused: true }],
    ['of a broken service', reply(503), { is: 'unanswered', why: 'the service answered 503' }],
    ['with 204', reply(204, ''), { is: 'unanswered' }],
  ])('%s', async (_, answer, expected) => {
    server.answer = answer;
    expect(await api().search('spare/1')).toMatchObject(expected);
    expect(server.asked[0]?.what).toBe('GET /spares/spare%2F1');
  });
});

describe('a release', () => {
  it.each<[string, Answer, object | undefined]>([
    ['of a spare', reply(204, ''), undefined],
    ['of one that is not there', reply(404), undefined],
    ['of one that is gone', reply(410), undefined],
    ['that is refused', reply(409, { detail: 'in use' }), { refused: true, why: 'the service answered 409: in use' }],
    ['of a broken service', reply(500), { why: 'the service answered 500' }],
  ])('%s', async (_, answer, expected) => {
    server.answer = answer;
    const found = await api().release('spare_1');
    if (expected === undefined) expect(found).toBeUndefined();
    else expect(found).toMatchObject(expected);
    expect(server.asked[0]?.what).toBe('DELETE /spares/spare_1');
  });
});
