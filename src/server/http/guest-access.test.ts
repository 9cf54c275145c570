import { expect, it } from 'vitest';
import { accessSubprotocol } from '../../api/access-protocol.ts';
import { silentLogger } from '../../base/log.ts';
import { systemClock } from '../../base/system.ts';
import { startTestServer } from '../testing.ts';
import { AgentLinks } from './agent-link/agent-link.ts';
import { guestAccess } from './guest-access.ts';

it('tells nobody without a token or a ticket which instances there are', async () => {
  const server = await startTestServer();
  const { client, plane } = server;
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  await client.create('instance', { metadata: { name: 'there' }, spec: { image: 'tiny', cpus: 1 } });
  const links = new AgentLinks({ clock: systemClock, log: silentLogger });
  const access = guestAccess({ decider: plane.decider, links, secret: Buffer.alloc(32, 'x') });
  const knock = (name: string, ...protocols: string[]) =>
    access.open({
      path: `/v1/instances/${name}/console`,
      headers: { 'sec-websocket-protocol': [accessSubprotocol, ...protocols].join(', ') },
      principal: undefined,
      requestId: 'r1',
      address: '',
      signal: new AbortController().signal,
    });
  for (const name of ['there', 'nowhere']) {
    await expect(knock(name)).rejects.toMatchObject({ code: 'Unauthenticated' });
    await expect(knock(name, 'berth.ticket.forged.seal')).rejects.toMatchObject({ code: 'Unauthenticated' });
  }
  await server.close();
});
