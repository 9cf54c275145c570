import { expect, it } from 'vitest';
import { startTestServer, testRegistration } from './testing.ts';

it('binds what fits in the commit that makes it, so the answer shows its host', async () => {
  const server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  await server
    .agentClient('h1')
    .register(testRegistration({ capacity: { VCPU: 64, MEMORY_MB: 65_536, DISK_GB: 100 } }));
  const create = () => server.client.create('instance', { spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });
  // The later ones come while the first is being committed, and share the next commit.
  for (const { status } of await Promise.all(Array.from({ length: 16 }, create)))
    expect(status).toMatchObject({ phase: 'Scheduled', host: 'h1' });
  await server.close();
});
