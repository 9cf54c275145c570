import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemFetch } from '../../../base/system.ts';
import { startTestServer } from '../../testing.ts';
import { hiddenValue } from './without-secrets.ts';

const main = {
  name: 'main',
  command: ['/bin/shop', '--password=very secret'],
  args: ['very secret'],
  env: { TOKEN: 'very secret' },
  ports: [],
};

const program = { script: 'login very secret', env: { TOKEN: 'very secret' } };

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', {
    metadata: { name: 'shop' },
    spec: { source: 'docker://docker.io/acme/shop:1', format: 'container' },
  });
  await server.client.create('instance', {
    metadata: { name: 'web' },
    spec: { image: 'shop', containers: [main] },
  });
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tiny.qcow2' } });
  await server.client.create('instance', {
    metadata: { name: 'machine' },
    spec: { image: 'tiny', userData: '#cloud-config\npassword: very secret\n' },
  });
  await server.client.create('instance', { metadata: { name: 'plain' }, spec: { image: 'tiny' } });
  await server.client.create('job', {
    metadata: { name: 'ci', project: 'jobs' },
    spec: { image: 'tiny', ...program },
  });
  await server.client.create('instance', {
    metadata: { name: 'runner', project: 'jobs' },
    spec: { image: 'tiny', run: { ...program, artifacts: [], timeLimitMs: 1_000, graceMs: 0, holdOnFailure: false } },
  });
});
afterAll(() => server.close());

const get = (path: string, signal?: AbortSignal) =>
  systemFetch(`${server.url}${path}`, { headers: { authorization: 'Bearer operator' }, ...(signal ? { signal } : {}) });

it('shows the environment and the command of a container to who asks for the one instance', async () => {
  const { spec } = await server.client.get('instance', 'web');
  expect(spec.containers).toEqual([main]);
});

it('shows user-data to who asks for the one instance, and in lists that there is some', async () => {
  expect((await server.client.get('instance', 'machine')).spec.userData).toContain('very secret');
  const { items } = await server.client.list('instance', { project: 'default' });
  const shown = items.map(({ metadata, spec }) => [metadata.name, spec.userData]);
  expect(shown).toEqual([
    ['machine', hiddenValue],
    ['plain', ''],
    ['web', ''],
  ]);
});

it('shows in a list only that there are such variables and words', async () => {
  const text = await (await get('/v1/instances')).text();
  expect(text).toContain(`"env":{"TOKEN":"${hiddenValue}"}`);
  expect(text).toContain(`"command":["${hiddenValue}","${hiddenValue}"],"args":["${hiddenValue}"]`);
  expect(text).not.toContain('very secret');
});

it.each(['jobs', 'instances'])('shows in a list of %s only that there are a script and variables', async (plural) => {
  expect((await server.client.get('job', 'ci', { project: 'jobs' })).spec).toMatchObject(program);
  const text = await (await get(`/v1/${plural}`)).text();
  expect(text).toContain(`"script":"${hiddenValue}"`);
  expect(text).not.toContain('very secret');
});

it('shows no more in a watch of jobs', async () => {
  const done = new AbortController();
  const watched = await get('/v1/jobs?watch=true&revision=0', done.signal);
  for await (const piece of watched.body ?? []) {
    const text = new TextDecoder().decode(piece);
    expect(text).not.toContain('very secret');
    if (text.includes(hiddenValue)) break;
  }
  done.abort();
});

it('shows no more in a watch, of what was and of what changes', async () => {
  const done = new AbortController();
  const watched = await get('/v1/instances?watch=true&revision=0', done.signal);
  let text = '';
  const reading = (async () => {
    for await (const piece of watched.body ?? []) {
      text += new TextDecoder().decode(piece);
      if (text.includes('"TOKEN"') && text.includes('"password-holder"')) break;
    }
  })();
  await server.client.create('instance', {
    metadata: { name: 'other' },
    spec: { image: 'shop', containers: [main] },
  });
  await server.client.create('instance', {
    metadata: { name: 'password-holder' },
    spec: { image: 'tiny', userData: 'very secret' },
  });
  await reading;
  done.abort();
  expect(text).toContain(hiddenValue);
  expect(text).not.toContain('very secret');
});
