import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemFetch } from '../../../base/system.ts';
import { keys } from '../../../core/state/keys.ts';
import { startTestServer } from '../../testing.ts';
import { bodyBytesMax } from './bounded-body.ts';
import { headersOf, pushBody, send, TestForge, testSecret, testSha } from './testing.ts';

let github: TestForge;
let forgejo: TestForge;
let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  github = await new TestForge('github').start();
  forgejo = await new TestForge('forgejo').start();
  server = await startTestServer({
    forges: {
      hooks: [github.hook({ name: 'gh' }), forgejo.hook({ name: 'fj' }), github.hook({ name: 'gh2' })],
      fetch: systemFetch,
    },
  });
  await server.client.create('image', {
    metadata: { name: 'default' },
    spec: { source: 'https://images.test/default.qcow2', checksum: `sha256:${'0'.repeat(64)}` },
  });
});
afterAll(async () => {
  await Promise.all([server.close(), github.stop(), forgejo.stop()]);
});

let count = 0;
beforeEach(() => {
  count += 1;
});

/** A push that no other test has. */
function freshPush(forge = github, changes: Readonly<Record<string, unknown>> = {}): string {
  return pushBody(forge, { ref: `refs/heads/topic-${count}`, ...changes });
}

function deliveryOf(body: string, { forge = github, event = 'push', id = `delivery-${count}` } = {}) {
  return { forge: forge.forge, event, id, body };
}

async function deliver(body: string, options: { forge?: TestForge; event?: string; id?: string; hook?: string } = {}) {
  const hook = options.hook ?? (options.forge === forgejo ? 'fj' : 'gh');
  return send(`${server.url}/v1/hooks/${hook}`, { body, headers: headersOf(deliveryOf(body, options)) });
}

function jobCount(): number {
  return server.plane.decider.cache.count('job');
}

describe('a signed push', () => {
  it.each([
    ['GitHub', () => github],
    ['Forgejo', () => forgejo],
  ])('of %s becomes a job that is stored when the answer comes', async (_, forgeOf) => {
    const forge = forgeOf();
    const { status, json } = await deliver(freshPush(forge), { forge });
    expect({ status, json }).toEqual({ status: 202, json: { jobs: [expect.stringMatching(/^web-[0-9a-f]{10}$/)] } });
    const { jobs } = json as { jobs: string[] };
    expect(server.plane.decider.cache.committed('job', keys.job('default', jobs[0] ?? ''))?.value.spec).toMatchObject({
      repo: { url: `${forge.url}/owner/web.git`, commit: testSha(1) },
      forge: { forge: forge.forge, delivery: `delivery-${count}` },
    });
  });

  it('has one job, however often and by whichever id it comes', async () => {
    const body = freshPush();
    const before = jobCount();
    const all = await Promise.all(Array.from({ length: 20 }, (_, i) => deliver(body, { id: `id-${count}-${i % 3}` })));
    expect(jobCount()).toBe(before + 1);
    expect(all.filter(({ status }) => status === 202)).toHaveLength(1);
    expect(all.filter(({ status }) => status === 200)).toHaveLength(19);
    expect(new Set(all.map(({ json }) => JSON.stringify(json))).size).toBe(1);
  });

  it('of another hook with the same id has a job of its own', async () => {
    const body = freshPush();
    expect(await deliver(body)).toMatchObject({ status: 202 });
    expect(await deliver(body, { hook: 'gh2' })).toMatchObject({ status: 202 });
  });

  it('with a gap asks the forge which commit is the newest', async () => {
    const branch = `topic/${count}`;
    const ref = `refs/heads/${branch}`;
    forgejo.heads.set(`owner/web ${branch}`, testSha(3));
    const body = (before: number, after: number): string =>
      pushBody(forgejo, { ref, before: testSha(before), after: testSha(after) });
    const third = await deliver(body(2, 3), { forge: forgejo, id: `c-${count}` });
    const first = await deliver(body(0, 1), { forge: forgejo, id: `a-${count}` });
    const jobOf = ({ json }: { json: unknown }) =>
      server.plane.decider.cache.get('job', keys.job('default', (json as { jobs: string[] }).jobs[0] ?? ''));
    expect(jobOf(first)?.value.status.cancel?.reason).toBe('Superseded');
    expect(jobOf(third)?.value.status.cancel).toBeUndefined();
    const questions = forgejo.requests.filter((request) => request.startsWith('GET '));
    expect(questions).toEqual([`GET /api/v1/repos/owner/web/branches/topic/${count}`]);
  });
});

describe('a pull request of Forgejo, which says not what came before,', () => {
  const pull = (action: string, digit: string): string =>
    JSON.stringify({
      action,
      number: count,
      pull_request: { head: { sha: testSha(digit), repo: { id: 7 } }, base: { ref: 'main' }, draft: false },
      repository: { id: 7, full_name: 'owner/web', clone_url: `${forgejo.url}/owner/web.git` },
    });

  /** Which of two deliveries has a job that goes on. */
  async function goesOn(): Promise<readonly boolean[]> {
    const answers = [
      await deliver(pull('opened', 'a'), { forge: forgejo, event: 'pull_request', id: `a-${count}` }),
      await deliver(pull('synchronized', 'b'), { forge: forgejo, event: 'pull_request', id: `b-${count}` }),
    ];
    return answers.map(({ json }) => {
      const key = keys.job('default', (json as { jobs: string[] }).jobs[0] ?? '');
      return server.plane.decider.cache.committed('job', key)?.value.status.cancel === undefined;
    });
  }

  it('goes on with the commit that the forge names', async () => {
    forgejo.heads.set(`owner/web ${count}`, testSha('a'));
    expect(await goesOn()).toEqual([true, false]);
  });

  it('goes on with the last that arrives, when the forge does not say', async () =>
    expect(await goesOn()).toEqual([false, true]));
});

describe('a delivery that asks for nothing', () => {
  it.each<[string, string, () => string, number, unknown]>([
    ['a ping', 'ping', () => '{"zen":"x"}', 200, { jobs: [], reason: 'a ping asks for nothing' }],
    ['an event that is not known', 'issues', () => '{}', 204, undefined],
    ['a deleted branch', 'push', () => freshPush(github, { after: testSha(0), head_commit: null }), 200, { jobs: [] }],
    ['a tag', 'push', () => freshPush(github, { ref: 'refs/tags/v1' }), 200, { jobs: [] }],
    ['a repository without a rule', 'push', () => other(), 200, { jobs: [], reason: 'no rule matches' }],
  ])('%s', async (_, event, bodyOf, status, json) => {
    const before = jobCount();
    expect(await deliver(bodyOf(), { event })).toMatchObject({ status, ...(json === undefined ? {} : { json }) });
    expect(jobCount()).toBe(before);
  });

  function other(): string {
    const repository = { id: 9, full_name: 'other/web', clone_url: `${github.url}/other/web.git` };
    return freshPush(github, { repository });
  }
});

type Headers = Readonly<Record<string, string>>;
interface Forged {
  readonly hook?: string;
  readonly change: (headers: Headers, body: string) => Headers;
}

const without =
  (...names: string[]): Forged['change'] =>
  (headers) =>
    Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));
const changing =
  (more: Headers): Forged['change'] =>
  (headers) => ({ ...headers, ...more });

describe('a malformed delivery is refused:', () => {
  const hex = (body: string, secret = testSecret): string => createHmac('sha256', secret).update(body).digest('hex');
  const signature = 'x-hub-signature-256';
  it.each<[string, Forged, number, string]>([
    ['no signature', { change: without(signature) }, 401, 'Unauthenticated'],
    ['an empty signature', { change: changing({ [signature]: '' }) }, 401, 'Unauthenticated'],
    ['a prefix without digits', { change: changing({ [signature]: 'sha256=' }) }, 401, 'Unauthenticated'],
    [
      'SHA-1 only',
      {
        change: (headers, body) => ({
          ...without(signature)(headers, body),
          'x-hub-signature': `sha1=${createHmac('sha1', testSecret).update(body).digest('hex')}`,
        }),
      },
      401,
      'Unauthenticated',
    ],
    ['a short signature', { change: changing({ [signature]: 'sha256=abcd' }) }, 401, 'Unauthenticated'],
    ['no hex', { change: changing({ [signature]: `sha256=${'g'.repeat(64)}` }) }, 401, 'Unauthenticated'],
    [
      'a signature without its prefix',
      { change: (headers, body) => ({ ...headers, [signature]: hex(body) }) },
      401,
      'Unauthenticated',
    ],
    [
      'a signature with another secret',
      { change: (headers, body) => ({ ...headers, [signature]: `sha256=${hex(body, 'other')}` }) },
      401,
      'Unauthenticated',
    ],
    [
      'a signature with an empty secret',
      { change: (headers, body) => ({ ...headers, [signature]: `sha256=${hex(body, '')}` }) },
      401,
      'Unauthenticated',
    ],
    [
      'a signature of another body',
      { change: (headers, body) => ({ ...headers, [signature]: `sha256=${hex(`${body} `)}` }) },
      401,
      'Unauthenticated',
    ],
    ["GitHub's headers at a hook of Forgejo", { hook: 'fj', change: (headers) => headers }, 401, 'Unauthenticated'],
    ['an unknown hook', { hook: 'none', change: (headers) => headers }, 404, 'NotFound'],
    ['an unknown hook without a signature', { hook: 'none', change: without(signature) }, 404, 'NotFound'],
    [
      'a form',
      { change: changing({ 'content-type': 'application/x-www-form-urlencoded' }) },
      415,
      'UnsupportedMediaType',
    ],
    ['bytes', { change: changing({ 'content-type': 'application/octet-stream' }) }, 415, 'UnsupportedMediaType'],
    ['a compressed body', { change: changing({ 'content-encoding': 'gzip' }) }, 415, 'UnsupportedMediaType'],
    ['no delivery id', { change: without('x-github-delivery') }, 400, 'InvalidRequest'],
    ['a delivery id with a space', { change: changing({ 'x-github-delivery': 'a b' }) }, 400, 'InvalidRequest'],
  ])('%s', async (_, { hook = 'gh', change }, status, code) => {
    const body = freshPush();
    const before = jobCount();
    const headers = change(headersOf(deliveryOf(body)), body);
    expect(await send(`${server.url}/v1/hooks/${hook}`, { body, headers })).toMatchObject({
      status,
      json: { error: { code } },
    });
    expect(jobCount()).toBe(before);
  });

  it.each<[string, string | (() => string), string]>([
    ['an empty body', '', 'body'],
    ['no JSON', 'payload=x', 'body'],
    ['half of a JSON', '{"ref":', 'body'],
    ['a byte order mark', '\uFEFF{}', 'body'],
    ['an array', '[]', 'body'],
    ['a key given twice', '{"ref":"a","ref":"b"}', 'ref'],
    ['deep nesting', `${'['.repeat(100)}${']'.repeat(100)}`, 'body'],
    ['no fields', '{}', 'ref'],
    [
      'a forged clone URL',
      () =>
        freshPush(github, { repository: { id: 7, full_name: 'owner/web', clone_url: 'https://evil.test/owner/web' } }),
      'repository.clone_url',
    ],
  ])('%s, signed', async (_, body, field) =>
    expect(await deliver(typeof body === 'string' ? body : body())).toMatchObject({
      status: 400,
      json: { error: { code: 'InvalidRequest', field } },
    }),
  );

  it('bytes that are not UTF-8, signed', async () => {
    const body = Buffer.from([0x7b, 0xff, 0x7d]);
    const signed = `sha256=${createHmac('sha256', testSecret).update(body).digest('hex')}`;
    const headers = { ...headersOf(deliveryOf('')), [signature]: signed };
    expect(await send(`${server.url}/v1/hooks/gh`, { body, headers })).toMatchObject({
      status: 400,
      json: { error: { field: 'body' } },
    });
  });

  it('a body over the limit, by its length', async () => {
    const body = Buffer.alloc(bodyBytesMax + 1, ' ');
    const headers = headersOf(deliveryOf(''));
    expect(await send(`${server.url}/v1/hooks/gh`, { body, headers })).toMatchObject({ status: 413 });
  });

  it('a body over the limit, in chunks', async () => {
    let left = bodyBytesMax / 65_536 + 1;
    const body = new ReadableStream({
      pull(controller) {
        if (left-- > 0) controller.enqueue(new Uint8Array(65_536));
        else controller.close();
      },
    });
    const headers = headersOf(deliveryOf(''));
    expect(await send(`${server.url}/v1/hooks/gh`, { body, headers })).toMatchObject({ status: 413 });
  });

  it('a signature that is right is taken in either letter case', async () => {
    const body = freshPush();
    const headers = { ...headersOf(deliveryOf(body)), [signature]: `sha256=${hex(body).toUpperCase()}` };
    expect(await send(`${server.url}/v1/hooks/gh`, { body, headers })).toMatchObject({ status: 202 });
  });
});
