import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { systemClock } from '../../base/system.ts';
import { occupyPort, portTaken } from '../drivers/qemu/test-host.ts';
import { publishAgain, publishByAgent } from './publish-ports.ts';

const options = (hostPort: number) => ({
  record: { instanceId: 'inst_1', ports: [{ guestPort: 22, hostPort, protocol: 'tcp' as const }] },
  bindAddress: '127.0.0.1',
  target: async () => undefined,
  clock: systemClock,
  log: silentLogger,
});

it('says which port is in use, and what to do', async () => {
  const { port, release } = await occupyPort();
  await expect(publishByAgent(options(port))).rejects.toMatchObject({
    code: 'PortInUse',
    message: expect.stringContaining(`127.0.0.1:${port}/tcp`),
  });
  await release();
});

it('of a guest that runs already tries again, and gives up when the guest ends', async () => {
  const { port, release } = await occupyPort();
  const warned = Promise.withResolvers<void>();
  const tried = publishAgain({ ...options(port), log: { ...silentLogger, warn: () => warned.resolve() } });
  await warned.promise;
  await tried.close();
  await release();
  const published = publishAgain(options(port));
  while (!(await portTaken(port)));
  await published.close();
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.close();
});
