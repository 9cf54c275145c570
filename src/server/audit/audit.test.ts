import { expect, it, onTestFinished } from 'vitest';
import { startTestServer } from '../testing.ts';
import { linesIn, testFolder, testSettings } from './testing.ts';

async function startAudited(options: Parameters<typeof startTestServer>[0] = {}) {
  const directory = testFolder();
  const server = await startTestServer({ audit: testSettings(directory), ...options });
  onTestFinished(() => server.close());
  const told = () =>
    linesIn(directory).map(({ who, verb, kind, project, object, outcome, reason }) =>
      Object.fromEntries(
        Object.entries({ who, verb, kind, project, object, outcome, reason }).filter(([, v]) => v !== undefined),
      ),
    );
  return { ...server, directory, told };
}

const image = { metadata: { name: 'debian' }, spec: { source: 'file:///debian.img' } };

it('has a line for each write before its answer, with its revision', async () => {
  const { client, told, directory } = await startAudited();
  const made = await client.create('image', image);
  expect(told()).toContainEqual({ who: 'admin', verb: 'create', kind: 'image', object: 'debian', outcome: 'done' });
  const line = linesIn(directory).at(-1);
  expect(line).toMatchObject({
    revision: made.metadata.revision,
    objectId: made.metadata.id,
    face: 'http',
    server: 'server',
    request: expect.any(String),
    address: '127.0.0.1',
    body: expect.stringMatching(/^[\w-]{22}$/),
  });
  await client.delete('image', 'debian');
  expect(told().at(-1)).toEqual({ who: 'admin', verb: 'delete', kind: 'image', object: 'debian', outcome: 'done' });
});
