// A caller takes no place in the line of a project where it may not write: it would keep that project's own writers waiting.

import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { systemFetch } from '../../../base/system.ts';
import { startTestServer } from '../../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
let token: string;
let lines: (string | undefined)[] = [];

beforeAll(async () => {
  server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  const issued = await server.client.createToken({
    metadata: { name: 'ours', labels: {} },
    spec: { role: 'user', project: 'ours', description: '' },
  });
  token = issued.token;
  const { committer } = server.plane.decider;
  const room = committer.room.bind(committer);
  vi.spyOn(committer, 'room').mockImplementation((project, plans) => {
    lines.push(project);
    return room(project, plans);
  });
});
beforeEach(() => (lines = []));
afterAll(() => server.close());

async function post(path: string, body: unknown): Promise<number> {
  const response = await systemFetch(server.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  await response.text();
  return response.status;
}

const instance = (project: string, name: string) => ({ metadata: { project, name }, spec: { image: 'tiny' } });

const task = { metadata: { project: 'theirs', name: 'room' }, spec: { cpus: 1, memoryMiB: 64, ttlMs: 60_000 } };

it.each([
  ['a create', '/v1/instances', instance('theirs', 'a')],
  ['a create of another kind', '/v1/tasks', task],
  ['a batch', '/v1/instances/batch', { items: [instance('theirs', 'a'), instance('theirs', 'b')] }],
  ['the request of a job', '/v1/job-requests?project=theirs', jobRequest()],
])('not for %s', async (_what, path, body) => {
  expect([await post(path, body), lines]).toEqual([403, []]);
});

it('but in that of its own project, also for a batch that begins with an item of others', async () => {
  const items = [instance('theirs', 'a'), instance('ours', 'b')];
  expect(await post('/v1/instances/batch', { items })).toBe(200);
  expect(new Set(lines)).toEqual(new Set(['ours']));
});

function jobRequest() {
  return {
    schema_version: 'jobrequest.v1',
    request_id: '0B2A1F64-6A5E-4A53-9F0A-6F6F5E1D2C3B',
    source: 'manual',
    repo_url: 'https://git.example/a/b.git',
    commit_sha: 'a'.repeat(40),
    submitted_at: '2026-01-01T00:00:00Z',
  };
}
