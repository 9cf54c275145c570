import { once } from 'node:events';
import { type ClientHttp2Session, connect, createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { accessSubprotocol } from '../../api/access-protocol.ts';
import { silentLogger } from '../../base/log.ts';
import { randomSecret, systemClock } from '../../base/system.ts';
import type { Driver } from '../drivers/driver.ts';
import { answerRequest } from '../link/link-routes.ts';
import { createExecSessions } from './exec-sessions.ts';

const instanceId = `inst_${'a'.repeat(26)}`;

/** A driver of one guest that runs; `dial` opens its ports. */
function dialledDriver(dial: () => Promise<Duplex>): Driver {
  const unused = async (): Promise<never> => {
    throw new Error('not used here');
  };
  return {
    name: 'dialled',
    fingerprint: async () => ({ available: true }),
    recover: async () => {},
    guests: () => [{ instanceId, incarnation: 1, state: 'running', ready: true, ports: [], phases: [] }],
    watch: () => {},
    create: unused,
    start: unused,
    stop: unused,
    remove: unused,
    readLog: unused,
    access: { dial },
    close: async () => {},
  };
}

describe('a way to a port of a guest', () => {
  let server: Http2Server;
  let session: ClientHttp2Session;
  let guest: Duplex;
  let dialled: PromiseWithResolvers<Duplex>;

  const open = (headers: Readonly<Record<string, string>> = {}) => {
    const stream = session.request({
      ':path': `/guests/${instanceId}/ports/80?incarnation=1`,
      ':method': 'POST',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
      'sec-websocket-version': '13',
      'sec-websocket-protocol': accessSubprotocol,
      ...headers,
    });
    return stream.on('error', () => {});
  };

  beforeEach(async () => {
    guest = new Duplex({ read() {}, write: (_data, _encoding, done) => done() });
    dialled = Promise.withResolvers();
    const routes = {
      drivers: [dialledDriver(() => dialled.promise)],
      sessions: createExecSessions({ clock: systemClock, log: silentLogger, randomSecret }),
      clock: systemClock,
      log: silentLogger,
    };
    server = createServer();
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {});
      const { ':path': path = '', ':method': method = '' } = headers;
      void answerRequest(routes, { stream, method, path, headers });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterEach(async () => {
    session.destroy();
    await new Promise((resolve) => server.close(resolve));
  });

  it('is closed again when the client does not speak WebSocket as it should', async () => {
    dialled.resolve(guest);
    const stream = open({ 'sec-websocket-key': 'no key' });
    await once(guest, 'close');
    expect(guest.destroyed).toBe(true);
    stream.close();
  });

  it('is closed again when the client has left while it was opened', async () => {
    const asked = once(server, 'stream');
    const stream = open();
    const [atAgent] = await asked;
    const left = once(atAgent, 'close');
    stream.close(8);
    await left;
    await turn();
    dialled.resolve(guest);
    await once(guest, 'close');
    expect(guest.destroyed).toBe(true);
  });
});
