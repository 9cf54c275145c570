import { expect, it, onTestFinished } from 'vitest';
import { startTestServer } from '../testing.ts';
import { systemDisk } from './audit-file.ts';
import { linesIn, testFolder, testSettings, textIn } from './testing.ts';

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

it('never says what a body holds', async () => {
  const { client, directory } = await startAudited();
  const planted = 'planted-7c1e';
  await client.create('image', image);
  const spec = { image: 'debian', cpus: 1, memoryMiB: 64, userData: planted };
  await client.create('instance', { metadata: { name: 'web' }, spec });
  await client.get('instance', 'web');
  expect(textIn(directory)).not.toContain(planted);
  expect(linesIn(directory).at(-1)).toMatchObject({ verb: 'read-user-data', object: 'web', outcome: 'begun' });
});

it('refuses changes while it cannot be written, and reads go on', async () => {
  let full = false;
  const write: typeof systemDisk.write = (fd, bytes) => {
    if (full) throw new Error('the disk is gone');
    systemDisk.write(fd, bytes);
  };
  const directory = testFolder();
  const { client } = await startAudited({ audit: testSettings(directory, { disk: { ...systemDisk, write } }) });
  full = true;
  await expect(client.create('image', image)).rejects.toMatchObject({ code: 'AuditUnavailable' });
  await expect(client.create('size', { metadata: { name: 's' }, spec: { cpus: 1 } })).rejects.toMatchObject({
    code: 'AuditUnavailable',
  });
  expect((await client.list('image')).items).toHaveLength(1); // it was made before its line failed, and says so
});

it('shows and checks the log over the API', async () => {
  const { client } = await startAudited();
  await client.create('image', image);
  const { server, items } = await client.auditLog({ who: 'admin', object: 'debian' });
  expect({ server, items }).toEqual({ server: 'server', items: [expect.objectContaining({ verb: 'create' })] });
  expect(await client.checkAuditLog()).toMatchObject({ faults: [], lines: 2 });
});
