import { expect, it } from 'vitest';
import { startTestServer, testRegistration } from './testing.ts';

it('binds what fits in the commit that makes it, so the answer shows its host', async () => {
  const server = await startTestServer();
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  await server.agentClient('h1').register(testRegistration());
  for (const name of ['one', 'two', 'three']) {
    const made = await server.client.create('instance', {
      metadata: { name },
      spec: { image: 'tiny', cpus: 1, memoryMiB: 64 },
    });
    expect(made.status).toMatchObject({ phase: 'Scheduled', host: 'h1' });
  }
  await server.close();
});
