// Known values are planted in everything that is given in confidence. Whatever is done with them, also in the wrong place,
// they are in no log, event, error, metric or backup, and not in the store's file. Real server and agent, as talkative as
// they may be; guests are pretended, and one image is pulled from a server that refuses and repeats what it was sent.

import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { misplaced } from './misplaced-values.ts';
import { type Fleet, runBerth, startFleet } from './processes.ts';

const planted: Record<string, string> = {
  'environment value': 'Planted/Env+7hQ2xV',
  'environment value of a run': 'Planted/RunEnv+3kW9',
  'user data': 'Planted/UserData+8sT4',
  'value of a secret': 'Planted/Secret+5mB1',
  'password of an image': 'Planted/ImagePassword+6nC3',
  'secret of a webhook': 'Planted/HookSecret+2pD8-and-long-enough',
  'token of a forge': 'Planted/ForgeToken+9rF5',
};
const value = (name: string): string => planted[name] ?? '';
const environment = value('environment value');

let directory: string;
let fleet: Fleet;
let refusing: Server;
const asked: string[] = [];
const errors: string[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-planted-'));
  // The password comes back in the status line, a header and the body of the refusal.
  refusing = createServer(({ headers: { authorization = '' } }, response) => {
    const said = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString();
    asked.push(said);
    response.writeHead(authorization === '' ? 401 : 403, `no ${said}`, { 'www-authenticate': `Basic realm="${said}"` });
    response.end(`not for ${said}, ${authorization}`);
  }).listen(0, '127.0.0.1');
  await once(refusing, 'listening');
  const secretFile = join(directory, 'hook.secret');
  const tokenFile = join(directory, 'hook.token');
  await writeFile(secretFile, value('secret of a webhook'), { mode: 0o600 });
  await writeFile(tokenFile, value('token of a forge'), { mode: 0o600 });
  const rules = [{ repository: 'owner/*', branches: ['main'], events: ['push'], label: 'tiny' }];
  fleet = await startFleet(join(directory, 'fleet'), {
    drivers: ['fake', 'qemu'],
    agent: { logLevel: 'debug', imageChecksums: 'recorded', imagePrivateAddresses: 'allow' },
    server: {
      logLevel: 'debug',
      maxConcurrency: 20,
      externalUrl: 'https://berth.example',
      forges: [{ name: 'hook', forge: 'github', secretFile, tokenFile, rules }],
    },
  });
  await plant();
});
afterAll(async () => {
  await fleet.stop();
  refusing.close();
  await rm(directory, { recursive: true, force: true });
});

function privateUrl(): string {
  const address = refusing.address();
  return `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/private`;
}

async function plant(): Promise<void> {
  const { client } = fleet;
  const values = { password: value('value of a secret'), image: value('password of an image') };
  await client.create('secret', { metadata: { name: 'db' }, spec: { values } });
  const defaults = { cpus: 1, memoryMiB: 128 };
  await client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'file:///tiny.qcow2', backend: 'fake', defaults },
  });
  await client.create('image', {
    metadata: { name: 'locked' },
    spec: { source: `${privateUrl()}/a.qcow2`, backend: 'qemu', defaults },
  });
  await client.create('image', {
    metadata: { name: 'boxes' },
    spec: { source: 'docker://localhost/web:1', format: 'container', backend: 'fake', defaults },
  });
  const { token } = await client.createToken({
    metadata: { name: 'ci', labels: {} },
    spec: { description: '', role: 'viewer' },
  });
  planted['text of a token'] = token;
  planted['secret part of a token'] = token.split('_')[3] ?? '';
}

/** An answer that refuses is kept, to be searched. */
async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${fleet.url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${fleet.environment.BERTH_TOKEN}`,
      'content-type': 'application/json',
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  if (response.status >= 400) errors.push(`${method} ${path.split('?')[0]}: ${text}`);
  return { status: response.status, text };
}

describe('what goes well', () => {
  it('runs with them', async () => {
    const userData = `#cloud-config\n# ${value('user data')}\n`;
    await fleet.client.create('instance', { metadata: { name: 'holder' }, spec: { image: 'tiny', userData } });
    await fleet.client.create('instance', {
      metadata: { name: 'runner' },
      spec: {
        image: 'tiny',
        run: {
          script: 'true',
          artifacts: [],
          env: { A: value('environment value of a run'), B: { secret: 'db', key: 'password' } },
          timeLimitMs: 60_000,
          graceMs: 1_000,
          holdOnFailure: true,
        },
      },
    });
    const container = { name: 'main', env: { A: environment, B: { secret: 'db', key: 'password' } }, ports: [] };
    const boxes = { metadata: { name: 'boxes' }, spec: { image: 'boxes', containers: [container] } };
    expect(await call('POST', '/v1/instances', boxes)).toMatchObject({ status: 201 });
    expect(await fleet.ready('holder')).toMatchObject({ status: { phase: 'Running' } });
    await fleet.until('runner', ({ status }) => status.guest !== undefined);
  });

  it('answers the holder of the token', async () => {
    const headers = { authorization: `Bearer ${planted['text of a token']}` };
    expect(await call('GET', '/v1/instances', undefined, headers)).toMatchObject({ status: 200 });
  });
});

it('fails to pull, from a server that repeats the password', async () => {
  const imageCredentials = [{ prefix: privateUrl(), username: 'robot', secret: 'db', key: 'image' }];
  await fleet.client.create('instance', { metadata: { name: 'locked' }, spec: { image: 'locked', imageCredentials } });
  const { status } = await fleet.until('locked', ({ status }) => JSON.stringify(status).includes('ImageUnavailable'));
  expect(asked.join()).toContain(value('password of an image'));
  errors.push(`status of locked: ${JSON.stringify(status)}`);
});

describe('what is refused', () => {
  it.each(misplaced)('%s', async (name, method, path, bodyOf) => {
    for (const text of Object.values(planted)) {
      if (name.includes('is the value') && /^\w+$/.test(text)) continue; // it is a good name
      const { status } = await call(method, path, bodyOf(text));
      expect(status).toBeGreaterThanOrEqual(400);
      expect(status).toBeLessThan(500);
    }
  });

  it.each<[string, (token: string) => Record<string, string>]>([
    ['a token that is cut', (token) => ({ authorization: `Bearer ${token.slice(0, -1)}` })],
    ['a token with another checksum', (token) => ({ authorization: `Bearer ${token}0` })],
    ['a token under another scheme', (token) => ({ authorization: `Basic ${token}` })],
    ['a token alone', (token) => ({ authorization: token })],
    ['a signature', (token) => ({ 'x-hub-signature-256': `sha256=${token}` })],
  ])('%s', async (_name, headersOf) => {
    for (const text of Object.values(planted)) {
      const path = headersOf(text)['authorization'] === undefined ? '/v1/hooks/hook' : '/v1/instances';
      expect((await call('POST', path, {}, headersOf(text))).status).toBeGreaterThanOrEqual(400);
    }
  });
});

/** Every place that is searched, after all of the above. */
async function places(): Promise<Record<string, string>> {
  const backup = join(directory, 'backup.jsonl');
  const made = await runBerth(['backup', backup, '--json'], fleet.environment);
  expect(made).toMatchObject({ code: 0 });
  const { client } = fleet;
  const lists = await Promise.all((['secret', 'token', 'image', 'task'] as const).map((kind) => client.list(kind)));
  return {
    'the log of the server': fleet.serverSaid(),
    'the log of the agent': fleet.agentSaid(),
    'the audit log': await filesIn(join(fleet.serverDirectory, 'audit'), /./),
    'the answers about the audit log': JSON.stringify(await client.auditLog()),
    'the events': JSON.stringify(await client.list('event', { limit: 1000 })),
    'the errors': errors.join('\n'),
    'the metrics': (await call('GET', '/metrics')).text,
    'the lists': JSON.stringify(lists),
    'the words of berth backup': JSON.stringify(made),
    'the backup': await readFile(backup, 'latin1'),
    'the file of the store': await filesIn(fleet.serverDirectory, /\.(db|sqlite)/),
  };
}

/** All of them, one after the other. */
async function filesIn(folder: string, names: RegExp): Promise<string> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && names.test(entry.name));
  const texts = await Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'latin1')));
  return texts.join('\n');
}

it('are nowhere', async () => {
  const searched = await places();
  const empty = Object.keys(searched).filter((place) => (searched[place] ?? '').length < 20);
  expect(empty, 'places in which there is nothing to search').toEqual([]);
  const leaks = Object.entries(searched).flatMap(([place, text]) =>
    Object.entries(planted)
      .filter(([, secret]) => formsOf(secret).some((form) => text.includes(form)))
      .map(([name, secret]) => `${name} in ${place}: ${around(text, secret)}`),
  );
  expect(leaks).toEqual([]);
});

/** As it is, in a URL, and in base64. */
function formsOf(secret: string): string[] {
  return [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64'), btoa(`robot:${secret}`)];
}

function around(text: string, secret: string): string {
  const form = formsOf(secret).find((each) => text.includes(each)) ?? '';
  const at = text.indexOf(form);
  return text.slice(Math.max(0, at - 120), at + form.length + 40);
}
