// Spares through GitLab and a service over HTTP, whose small servers answer as the documentation says, while Berth is killed before it has the
// answer.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { apiToken, TestGitlab, triggerToken } from '../src/server/spares/provisioners/gitlab/test-gitlab.ts';
import { reply, TestServer } from '../src/server/spares/test-server.ts';
import { type Fleet, startFleet } from './processes.ts';

let directory: string;
let fleet: Fleet;
let gitlab: TestGitlab;
let maker: TestServer;
const held: ServerResponse[] = [];

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-spare-'));
  const file = async (name: string, text: string): Promise<string> => {
    await writeFile(join(directory, name), `${text}\n`, { mode: 0o600 });
    return join(directory, name);
  };
  gitlab = new TestGitlab();
  const gitlabUrl = await gitlab.listen();
  // The POST is carried out, and its answer never comes.
  maker = new TestServer((asked, response) => {
    if (asked.what.startsWith('POST')) held.push(response);
    else reply(200, { address: '10.0.0.9' })(asked, response);
  });
  const makerUrl = await maker.listen();
  fleet = await startFleet(join(directory, 'fleet'), {
    drivers: ['fake'],
    server: {
      provisioners: {
        pipelines: {
          gitlab: {
            url: gitlabUrl,
            project: 'group/spares',
            ref: 'main',
            triggerTokenFile: await file('trigger', triggerToken),
            apiTokenFile: await file('api', apiToken),
            pollMs: 100,
          },
        },
        maker: { http: { url: `${makerUrl}/spares`, searchUrl: `${makerUrl}/spares/{spare}` } },
        blind: { http: { url: `${makerUrl}/spares` } },
      },
    },
  });
});
afterAll(async () => {
  await fleet?.stop();
  await gitlab?.close();
  await maker?.close();
  await rm(directory, { recursive: true, force: true });
});

async function call(method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const authorization = `Bearer ${fleet.environment['BERTH_TOKEN']}`;
  const headers = { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  const response = await fetch(`${fleet.url}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Record<string, unknown>;
}

async function prepare(provisioner: string): Promise<() => Promise<Record<string, unknown>>> {
  const { spare_id: id } = await call('POST', '/spare/prepare', {
    requested_cpu: 1,
    requested_memory: 64,
    provisioner,
  });
  return () => call('GET', `/spare/${String(id)}`);
}

it('a pipeline is triggered once, although the server is killed while it runs', async () => {
  const show = await prepare('pipelines');
  await expect.poll(() => gitlab.pipelines.length).toBe(1);
  await fleet.restartServer();
  const [pipeline] = gitlab.pipelines;
  if (pipeline !== undefined) pipeline.status = 'success';
  await expect.poll(show).toMatchObject({ status: 'ready' });
  expect(gitlab.pipelines).toHaveLength(1);
});

it('a service is called once, although the server is killed before the answer', async () => {
  const show = await prepare('maker');
  await expect.poll(() => held.length).toBe(1);
  await fleet.restartServer();
  await expect.poll(show).toMatchObject({ status: 'ready', ip: '10.0.0.9' });
  expect(held).toHaveLength(1);
});

it('a person decides where the service cannot be searched', async () => {
  const before = held.length;
  const show = await prepare('blind');
  await expect.poll(() => held.length).toBe(before + 1);
  await fleet.restartServer();
  await expect.poll(show).toMatchObject({ status: 'unknown', message: expect.stringContaining('without searchUrl') });
  expect(held).toHaveLength(before + 1);
});
